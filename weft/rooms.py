"""Which parts a room holds: the files of its folder. There is no registry.

A room is a package such as weft.nn.cells. Each of its files holds one part, named as the file:
nn/cells/lstm.py holds the cell that a recipe calls `lstm`. A part that needs several files is a folder with
a file named as the contract: tasks/tag/task.py holds the task `tag`. Recipes resolve names here and the law
suites walk the same list, so a new file is usable and tested at once. Read next: config/build.py.
"""

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
from types import ModuleType

from weft.errors import ConfigError


def parts(room: ModuleType, contract: type) -> dict[str, type]:
    """Every part of a room by its name, the name of its file.

    Args:
        room: a package.
        contract: the class that every part of this room extends.

    Raises:
        TypeError: a file holds two parts.
    """
    found = {entry.name: _part(room, entry, contract) for entry in pkgutil.iter_modules(room.__path__)}
    return {name: part for name, part in found.items() if part is not None}


def folders(room: ModuleType, contract: type) -> list[str]:
    """Names of the parts that are folders, sorted, without importing any of them."""
    return sorted(
        entry.name
        for entry in pkgutil.iter_modules(room.__path__)
        if entry.ispkg and _holds(room, entry.name, contract)
    )


def get(room: ModuleType, contract: type, name: str) -> type | None:
    """The part of that name, if there is one; no other file of the room is read.

    Raises:
        TypeError: its file holds two parts.
    """
    for entry in pkgutil.iter_modules(room.__path__):
        if entry.name == name:
            return _part(room, entry, contract)
    return None


def find(room: ModuleType, contract: type, name: str) -> type:
    """The part of that name.

    Raises:
        ConfigError: no such part; names the nearest one.
    """
    found = get(room, contract, name)
    if found is None:
        known = parts(room, contract)
        kind = contract.__name__.lower()
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "there is " + ", ".join(sorted(known))
        raise ConfigError(f"unknown {kind} {name!r}; {hint}")
    return found


def beside(kind: type, file: str, contract: type) -> type | None:
    """The part that another file of the same folder holds, such as figure.py beside task.py.

    Args:
        kind: a class of the folder.
        file: the other file's name, without .py.
        contract: what the part extends.
    """
    module = file_beside(kind, file)
    return None if module is None else _only(module, contract)


def file_beside(kind: type, file: str) -> ModuleType | None:
    """Another file of the folder that holds a class; None where there is none, or no folder."""
    folder = kind.__module__.rpartition(".")[0]
    if not folder or importlib.util.find_spec(f"{folder}.{file}") is None:
        return None
    return importlib.import_module(f"{folder}.{file}")


def _holds(room: ModuleType, folder: str, contract: type) -> bool:
    return importlib.util.find_spec(f"{room.__name__}.{folder}.{contract.__name__.lower()}") is not None


def _part(room: ModuleType, entry: pkgutil.ModuleInfo, contract: type) -> type | None:
    place = f"{room.__name__}.{entry.name}"
    if entry.ispkg:
        place = f"{place}.{contract.__name__.lower()}"
        if importlib.util.find_spec(place) is None:
            return None
    return _only(importlib.import_module(place), contract)


def _only(module: ModuleType, contract: type) -> type | None:
    here = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, contract)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and value is not contract
        and not inspect.isabstract(value)
    ]
    if len(here) > 1:
        names = " and ".join(part.__name__ for part in here)
        raise TypeError(f"{module.__name__} holds {names}; a file of a room holds one part")
    return here[0] if here else None
