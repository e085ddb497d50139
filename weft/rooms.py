"""Find the parts of a room: the files of a folder, or the classes of a file. There is no registry.

A room is a package such as weft.nn.cells. Each of its files contains one part with the file's name:
nn/cells/lstm.py contains the cell that a recipe calls `lstm`. A part with several files is a folder with a
file named after the contract: tasks/tag/task.py contains the task `tag`. Tiny parts share one file with
their contract, and their names are those of their classes: train/schedules.py contains CosineRestarts,
`cosine_restarts`, and LinearSchedule, `linear`. Recipes and law tests find names here, so a new part is
usable and tested at once. Read next: config/build.py.
"""

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import re
from types import ModuleType

from weft.errors import ConfigError


def room_of(contract: type) -> ModuleType:
    """The room of a contract: its own file if that contains parts, else its folder."""
    module = importlib.import_module(contract.__module__)
    return module if _own(module, contract) else importlib.import_module(module.__name__.rpartition(".")[0])


def name_of(part: type) -> str:
    """The name of one of Weft's parts in a recipe."""
    for contract in part.__mro__[1:]:
        if inspect.isabstract(contract) and contract.__module__ == part.__module__:
            return _class_name(part, contract)
    return part.__module__.rpartition(".")[2]


def parts(room: ModuleType, contract: type) -> dict[str, type]:
    """All parts of a room by name.

    Args:
        room: a package, or a module.
        contract: the class that all parts of the room extend.

    Raises:
        TypeError: a file of the package contains two parts.
    """
    if not hasattr(room, "__path__"):
        return {_class_name(part, contract): part for part in _own(room, contract)}
    found = {entry.name: _part(room, entry, contract) for entry in pkgutil.iter_modules(room.__path__)}
    return {name: part for name, part in found.items() if part is not None}


def folders(room: ModuleType, contract: type) -> list[str]:
    """The sorted names of parts that are folders, without importing them."""
    return sorted(
        entry.name
        for entry in pkgutil.iter_modules(room.__path__)
        if entry.ispkg and _has_part(room, entry.name, contract)
    )


def get(room: ModuleType, contract: type, name: str) -> type | None:
    """The part of that name, or None; imports no other file of the room.

    Raises:
        TypeError: its file contains two parts.
    """
    if not hasattr(room, "__path__"):
        return parts(room, contract).get(name)
    for entry in pkgutil.iter_modules(room.__path__):
        if entry.name == name:
            return _part(room, entry, contract)
    return None


def find(room: ModuleType, contract: type, name: str) -> type:
    """The part of that name.

    Raises:
        ConfigError: there is no such part; names the nearest one.
    """
    found = get(room, contract, name)
    if found is None:
        known = parts(room, contract)
        kind = contract.__name__.lower()
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "there is " + ", ".join(sorted(known))
        raise ConfigError(f"unknown {kind} {name!r}; {hint}")
    return found


def _has_part(room: ModuleType, folder: str, contract: type) -> bool:
    return importlib.util.find_spec(f"{room.__name__}.{folder}.{contract.__name__.lower()}") is not None


def _part(room: ModuleType, entry: pkgutil.ModuleInfo, contract: type) -> type | None:
    place = f"{room.__name__}.{entry.name}"
    if entry.ispkg:
        place = f"{place}.{contract.__name__.lower()}"
        if importlib.util.find_spec(place) is None:
            return None
    return _only(importlib.import_module(place), contract)


def _class_name(part: type, contract: type) -> str:
    """The class's name in lower case, without the contract's at its end.

    Example:
        >>> from weft.train.schedules import CosineRestarts, LinearSchedule, Schedule
        >>> _class_name(CosineRestarts, Schedule), _class_name(LinearSchedule, Schedule)
        ('cosine_restarts', 'linear')
    """
    name = part.__name__.removesuffix(contract.__name__)
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name).lower()


def _own(module: ModuleType, contract: type) -> list[type]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, contract)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and value is not contract
        and not inspect.isabstract(value)
    ]


def _only(module: ModuleType, contract: type) -> type | None:
    own = _own(module, contract)
    if len(own) > 1:
        names = " and ".join(part.__name__ for part in own)
        raise TypeError(f"{module.__name__} defines {names}; a file must define only one part")
    return own[0] if own else None
