"""Messages of commits: what the hook and `make check` refuse."""

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


def test_commits_after_the_rule_are_judged_and_neither_older_ones_nor_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "core.hooksPath=/dev/null"]
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(changed, "ROOT", tmp_path)
    assert commits.main([]) == 0 and "No git checkout" in capsys.readouterr().out
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "older work")
    git("branch", "beside")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "commits.py").touch()
    git("add", ".")
    git("commit", "-q", "-m", "the rule itself")
    git("commit", "-q", "--allow-empty", "-m", "search: refuse a width of 0" + BODY)
    git("switch", "-q", "beside")
    git("commit", "-q", "--allow-empty", "-m", "work that began before the rule")
    git("switch", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "some merge", "beside")
    assert commits.main([]) == 0 and "read: 1" in capsys.readouterr().out
    git("commit", "-q", "--allow-empty", "-m", "search: refused")
    assert commits.main([]) == 1
    assert "expected an imperative" in capsys.readouterr().out
    (tmp_path / "tests" / "commits.py").write_text("another rule")
    git("commit", "-q", "-a", "-m", "the rule anew")
    assert commits.main([]) == 0  # what was written before it is not judged by it
