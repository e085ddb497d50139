"""`make docs` after `make setup`: all that the reference imports is what `make docs` installs."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = ROOT / "Makefile"
LEFT_OUT = ("weft/nn/kernels/triton", "weft/commands")  # modules.py leaves these out of the reference


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def brought() -> set[str]:
    """Every distribution that `make docs` installs, with what they need in turn."""
    requirement = pytest.importorskip("packaging.requirements").Requirement
    with (ROOT / "pyproject.toml").open("rb") as file:
        about = tomllib.load(file)
    project, found = about["project"], set[str]()
    install = re.search(
        r"\$\(VENV\)/ready-docs:.*?-e \"\.(\[\S+\])\" --group docs", MAKEFILE.read_text("utf-8"), re.S
    )
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
