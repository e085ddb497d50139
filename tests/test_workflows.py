"""Workflow files of the usual hosts: valid, and all they do is call the Makefile."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

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
