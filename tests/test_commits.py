"""Messages of commits: what the hook and `make check` refuse."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import changed, commits

BODY = "\n\nA width of 0 gave an empty answer. The new test fails without the check.\n"


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("search: refuse a width of 0" + BODY, ""),
        ("nn, search: process rows once" + BODY + "# On branch main\n", ""),
        ("Merge branch 'search'\n", ""),
        ("refuse a width of 0" + BODY, "room:"),
        ("wip: refuse" + BODY, "room:"),
        ("search: refused a width of 0" + BODY, "imperative"),
        ("search: refuses a width of 0" + BODY, "imperative"),
        ("search: a width of 0 is refused" + BODY, "imperative"),
        ("search: refuse " + "x" * 70 + BODY, "72 characters"),
        ("search: refuse a width of 0" + BODY[1:], "empty second line"),
        ("search: refuse a width of 0\n", "body"),
        ("search: refuse a width of 0\n\nCo-authored-by: A Person of Many Names <a@b.example>\n", "body"),
    ],
)
def test_a_message_has_a_room_an_imperative_and_a_body(message: str, word: str) -> None:
    found = commits.faults(message)
    assert len(found) == bool(word) and all(word in fault for fault in found), found


def test_commits_after_the_start_are_judged_and_neither_older_ones_nor_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(seconds: int, *words: str) -> None:
        when = f"{commits.START + seconds} +0000"
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        name = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "core.hooksPath=/dev/null"]
        command = ["git", *name, *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=os.environ | dates)

    monkeypatch.setattr(changed, "ROOT", tmp_path)
    assert commits.main([]) == 0 and "No git checkout" in capsys.readouterr().out
    git(-2, "init", "-q", "-b", "main")
    git(-2, "commit", "-q", "--allow-empty", "-m", "older work")
    git(-1, "switch", "-q", "-c", "beside")
    git(-1, "commit", "-q", "--allow-empty", "-m", "work that began before the start")
    git(1, "switch", "-q", "main")
    git(1, "commit", "-q", "--allow-empty", "-m", "search: refuse a width of 0" + BODY)
    git(2, "merge", "-q", "--no-ff", "-m", "some merge", "beside")
    assert commits.main([]) == 0 and "read: 1" in capsys.readouterr().out
    git(3, "commit", "-q", "--allow-empty", "-m", "search: refused")
    assert commits.main([]) == 1
    assert "expected an imperative" in capsys.readouterr().out
    git(90_000, "commit", "-q", "--allow-empty", "-m", "search: refuse a width of 0" + BODY)
    assert commits.main([]) == 0 and "read: 1" in capsys.readouterr().out  # only the last day's
