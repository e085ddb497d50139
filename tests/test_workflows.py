"""Workflow files of the usual hosts call the Makefile; messages of commits; tests that belong to a change."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests import changed, commits
from tests.changed import folders_of

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    ".github/workflows/check.yml",
    ".forgejo/workflows/check.yml",
    ".github/workflows/nightly.yml",
    ".forgejo/workflows/nightly.yml",
    ".gitlab-ci.yml",
    ".woodpecker/check.yaml",
    ".woodpecker/test.yaml",
    ".woodpecker/nightly.yaml",
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def read(name: str) -> dict[str, Any]:
    found = YAML(typ="safe").load((ROOT / name).read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def commands(value: Any) -> list[str]:
    """What is run: `run` of GitHub's steps, `script` of GitLab's jobs, `commands` of Woodpecker's steps."""
    if isinstance(value, list):
        return [line for one in value for line in commands(one)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("run", "script", "commands") if key in value]
    lines = [line for one in own for line in ([one] if isinstance(one, str) else one)]
    return lines + [line for one in value.values() for line in commands(one)]


@pytest.mark.parametrize("name", FILES)
def test_a_workflow_calls_targets_of_the_makefile_and_nothing_else(name: str) -> None:
    lines = commands(read(name))
    assert lines
    for line in lines:
        made = re.fullmatch(r"make ([a-z-]+)( PYTHON=python)?", line)
        assert made and made[1] in TARGETS, line


@pytest.mark.parametrize("host", [".github", ".forgejo", ".gitlab", ".woodpecker"])
def test_a_host_calls_what_ci_runs_and_the_nightly_tests(host: str) -> None:
    own = re.findall(r"^make ([a-z-]+)", (ROOT / ".ci" / "run").read_text("utf-8"), re.M)
    lines = [line.split()[1] for name in FILES if name.startswith(host) for line in commands(read(name))]
    assert "test-changed" in own and set(lines) == {*own, "nightly"}


def test_the_hosts_test_every_python_that_the_package_names() -> None:
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    for name in FILES[:2]:
        assert read(name)["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    gitlab = read(".gitlab-ci.yml")["test"]["parallel"]["matrix"]
    assert gitlab == [{"PYTHON_VERSION": named}]
    assert read(".woodpecker/test.yaml")["matrix"]["PYTHON_VERSION"] == named


@pytest.mark.parametrize("name", FILES[:4])
def test_a_workflow_of_actions_has_what_its_format_asks_for(name: str) -> None:
    about = read(name)
    assert set(about) <= {"name", "on", "permissions", "concurrency", "jobs"}
    assert "workflow_dispatch" in about["on"] and ("push" in about["on"]) != ("schedule" in about["on"])
    for job in about["jobs"].values():
        assert {"runs-on", "steps", "timeout-minutes"} <= set(job)
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step) and set(step) <= {"name", "run", "uses", "with"}
    assert "github.com" not in json.dumps(about)  # no address that would have to change


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


def test_each_package_leads_to_its_tests() -> None:
    files = ["weft/nn/cells/lstm.py", "weft/train/loop.py", "recipes/translate/help.yaml", "README.md"]
    assert {path.name for path in folders_of(files)} == {"laws", "oracles", "nn", "train", "test_recipes.py"}
    assert {path.name for path in folders_of(["weft/masks.py", "tests/data/test_audio.py"])} == {
        "test_masks.py",
        "data",
    }
