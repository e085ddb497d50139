"""The Makefile installs what it says, and `make docs` all that the reference imports."""

import ast
import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = "weft/commands"  # modules.py leaves it out of the reference


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def planned(*targets: str) -> str:
    """The commands that make would run in a new environment."""
    make = shutil.which("make") or pytest.skip("make is not installed")
    given = [make, "--no-print-directory", "-n", "VENV=nowhere", *targets]
    return subprocess.run(given, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def brought() -> set[str]:
    """Every distribution that `make docs` installs, with what they need in turn."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    with (ROOT / "pyproject.toml").open("rb") as file:
        about = tomllib.load(file)
    project, found = about["project"], set[str]()
    install = re.search(r'pip install .*-e "\.(\[\S+\])" --group docs', planned("docs"))
    assert install
    waiting = [*project["dependencies"], *about["dependency-groups"]["docs"], project["name"] + install[1]]
    for one in map(requirement, waiting):  # grows while it is read
        if one.name == project["name"]:
            waiting += [
                more for extra in sorted(one.extras) for more in project["optional-dependencies"][extra]
            ]
        elif plain(one.name) not in found and (not one.marker or one.marker.evaluate({"extra": ""})):
            found.add(plain(one.name))
            with suppress(importlib.metadata.PackageNotFoundError):
                waiting += importlib.metadata.requires(one.name) or []
    return found


def imported() -> dict[str, str]:
    """Third-party modules that are imported when a module of the reference is, and one file of each."""
    found = {}
    for path in sorted((ROOT / "weft").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(LEFT_OUT):
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found |= {one.partition(".")[0]: name for one in names}
    return {one: name for one, name in found.items() if one not in {*sys.stdlib_module_names, "weft"}}


def test_make_docs_installs_all_that_the_reference_imports() -> None:
    have, homes = brought(), importlib.metadata.packages_distributions()
    missing = {
        module: name
        for module, name in imported().items()
        if not have & {plain(one) for one in homes.get(module, [module])}
    }
    assert missing == {}


@pytest.mark.parametrize(
    "target", ["setup", "setup-test", "setup-dev", "docs", "course", "homework", "slides"]
)
def test_commands_of_the_makefile_are_whole(target: str) -> None:
    commands = planned(target)  # a comma in $(call ...) once cut one short, with its quotes open
    subprocess.run(["sh", "-n"], input=commands, check=True, text=True)
    installs = [line for line in commands.splitlines() if "-m pip install" in line]
    assert installs and all("echo $? >nowhere/status" in line for line in installs)
    for line in installs:
        assert shlex.split(line.partition("pip install")[2].partition(";")[0])
