"""The site's reference is complete: every package, task and kind of part has a page."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import weft
import weft.tasks
from tests.docs.tools import tool
from weft import rooms
from weft.config import kinds
from weft.config.building import described
from weft.tasks.task import Task
from weft.train.settings import TrainingSettings

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
MODULES = re.compile(r"^\.\. modules:: (.+)\n(?:   :without: (.+)\n)?", re.MULTILINE)


def test_the_reference_has_every_name_for_users_once_and_no_empty_section() -> None:
    documented = tool("documented").documented()
    described: list[str] = []
    for page in (DOCS / "api").glob("*.rst"):
        for packages, without in MODULES.findall(page.read_text("utf-8")):
            modules = [one for package in packages.split() for one in tool("documented").modules(package)]
            left = [one for one in modules if one.rpartition(".")[2] not in without.split()]
            found = [name for name in documented if name.rpartition(".")[0] in left]
            assert found, (page.name, packages)
            described += found
    assert sorted(described) == sorted(documented)
    assert {"weft.run.loading.load", "weft.inspect.frame.InspectorFrame"} <= documented


def test_the_public_names_are_those_that_the_packages_list() -> None:
    page = (DOCS / "api" / "public.rst").read_text("utf-8")
    listed = set(re.findall(r"^\.\. public-names:: (\S+)$", page, re.MULTILINE))
    stubs = {
        ".".join(("weft", *path.parent.relative_to(Path(weft.__file__).parent).parts))
        for path in Path(weft.__file__).parent.rglob("__init__.pyi")
    }
    assert listed == stubs  # the directive reads the stubs, which `dir` and `__all__` read too


def test_every_task_has_a_page_of_its_settings() -> None:
    pages = {path.stem for path in (DOCS / "settings").glob("*.rst")}
    assert sorted(set(rooms.folders(weft.tasks, Task)) - pages) == []


def test_every_kind_of_part_that_a_recipe_names_has_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in (DOCS / "settings").glob("*.rst"))
    named = set(re.findall(r"^\.\. part-settings:: (\S+)$", pages, re.MULTILINE))
    tasks = [rooms.find(weft.tasks, Task, name) for name in rooms.folders(weft.tasks, Task)]
    todo = [TrainingSettings, *(kind for task in tasks for kind in task.sections.values())]
    found = set()
    for kind in todo:
        for annotation, _ in described(kind).values():
            for one in (annotation, *getattr(annotation, "__args__", ())):
                part = kinds.contract_of(one)
                contract = f"{part[0].__module__}.{part[0].__name__}" if part else ""
                if part and contract not in found:
                    found.add(contract)
                    room = rooms.room_of(part[0])
                    todo += rooms.parts(room, part[0]).values()
    assert sorted(found - named) == []


@pytest.mark.parametrize(
    "package", ["weft.data", "weft.metrics", "weft.nn", "weft.nn.cells", "weft.search", "weft.tasks"]
)
def test_public_names_have_examples(package: str) -> None:
    module = importlib.import_module(package)
    public = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    assert [
        name for name, one in public.items() if not inspect.ismodule(one) and ">>>" not in (one.__doc__ or "")
    ] == []


def test_every_name_of_the_reference_has_an_example() -> None:
    places = [one.rpartition(".") for one in tool("documented").documented()]
    named = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, _, name in places}
    without = {name for name, one in named.items() if ">>>" not in (one.__doc__ or "")}
    assert without == {"weft.run.loading.load"}  # it needs a trained run, which its example names
