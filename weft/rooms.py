"""Find the parts of a room: the files of a folder, or the classes of a file. There is no registry.

A room is a package such as weft.nn.cells. Each of its files contains one part with the file's name:
nn/cells/lstm.py contains the cell that a recipe calls `lstm`. A part with several files is a folder with a
file named after the contract: tasks/tag/task.py contains the task `tag`. Tiny parts share one file with
their contract, and their names are those of their classes: train/schedules.py contains CosineRestarts,
`cosine_restarts`, and LinearSchedule, `linear`. A folder may hold such a file: metrics/labels.py has
Mcc, `mcc`, and nn/encoders/encoder.py BagEncoder, `bag`. Recipes and law tests find names here, so a new
part is usable and tested at once. Read next: config/building.py.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import re
from types import ModuleType
from typing import ClassVar

from weft.errors import ConfigError
from weft.wording import close_name


def room_of(contract: type) -> ModuleType:
    """The room of a contract: its folder if that is named so, as cells; else its file if that has parts."""
    module = importlib.import_module(contract.__module__)
    folder = importlib.import_module(module.__name__.rpartition(".")[0])
    plural = folder.__name__.endswith(f".{contract.__name__.lower()}s")
    return module if _own(module, contract) and not plural else folder


def name_of(part: type) -> str:
    """The name of one of Weft's parts in a recipe."""
    for contract in part.__mro__[1:]:
        if inspect.isabstract(contract) and contract.__module__ == part.__module__:
            return _class_name(part, contract)
    return part.__module__.rpartition(".")[2]


def parts(room: ModuleType, contract: type) -> dict[str, type]:
    """All parts of a room by name."""
    if not hasattr(room, "__path__"):
        return {_class_name(part, contract): part for part in _own(room, contract)}
    return {
        name: part
        for entry in pkgutil.iter_modules(room.__path__)
        for name, part in _parts_of_file(room, entry, contract).items()
    }


def classes(room: ModuleType, contract: type) -> list[type]:
    """All parts of a folder where names do not count, so that a file may have several."""
    files = [
        importlib.import_module(f"{room.__name__}.{one.name}") for one in pkgutil.iter_modules(room.__path__)
    ]
    return [part for file in files for part in _own(file, contract)]


def folders(room: ModuleType, contract: type) -> list[str]:
    """The sorted names of parts that are folders, without importing them."""
    return sorted(
        entry.name
        for entry in pkgutil.iter_modules(room.__path__)
        if entry.ispkg and _has_part(room, entry.name, contract)
    )


def get(room: ModuleType, contract: type, name: str) -> type | None:
    """The part whose file has that name, or None; imports no other file of the room."""
    beside = parts(importlib.import_module(contract.__module__), contract)
    if name in beside or not hasattr(room, "__path__"):
        return beside.get(name)
    for entry in pkgutil.iter_modules(room.__path__):
        if entry.name == name:
            return _parts_of_file(room, entry, contract).get(name)
    return None


def find(room: ModuleType, contract: type, name: str) -> type:
    """The part of that name."""
    found = get(room, contract, name)
    if found is None:
        known = parts(room, contract)
        if name in known:
            return known[name]
        kind = contract.__name__.lower()
        near = close_name(name, known)
        hint = f"did you mean {near!r}?" if near else "there is " + ", ".join(sorted(known))
        raise ConfigError(f"unknown {kind} {name!r}; {hint}")
    return found


GUIDES = {
    "Cell": "add-a-cell",
    "Score": "add-a-score",
    "Metric": "add-a-metric",
    **dict.fromkeys(("Task", "Training", "Pipeline", "Predictor", "Answer", "Evaluation"), "add-a-task"),
}
"""The pages of docs/guides on how to write a part, by the name of its contract."""


def guide(part: type) -> str:
    """The page that says how to write a part like this one."""
    names = (GUIDES.get(base.__name__, "") for base in part.__mro__ if base.__module__.startswith("weft."))
    page = next(filter(None, names), "")
    return f"docs/guides/{page}.md" if page else "CONTRIBUTING.md"


def path_of(part: type) -> str:
    """The dotted path of a class, as recipes name it."""
    return f"{part.__module__}.{part.__qualname__}"


def wrong_result(part: object, method: str, need: str, found: str) -> ConfigError:
    """An error about what a method of a part returned."""
    kind = type(part)
    return ConfigError(
        f"{path_of(kind)}.{method}: expected it to return {need}, got {found}; see {guide(kind)}"
    )


def check_complete(part: type) -> None:
    """Check that a user's class has everything that its contract declares, and takes what it is given."""
    name = path_of(part)
    codes = [getattr(vars(base).get("__init__"), "__code__", None) for base in part.__mro__]
    set_there = {one for code in codes if code is not None for one in code.co_names}
    declared = [
        one
        for base in part.__mro__
        for one, kind in inspect.get_annotations(base).items()
        if getattr(kind, "__origin__", None) is ClassVar and not hasattr(part, one) and one not in set_there
    ]
    lacking = [f"the method {one}" for one in sorted(getattr(part, "__abstractmethods__", ()))]
    lacking += [f"a value for {one}" for one in declared]
    if lacking:
        raise ConfigError(f"{name}: it lacks {' and '.join(lacking)}; see {guide(part)}")
    given = positional(part)
    if not given:
        return
    taken = [one for one in inspect.signature(part).parameters.values() if one.kind in POSITIONAL]
    needed = [one.name for one in taken if one.default is one.empty]
    free = any(one.kind is one.VAR_POSITIONAL for one in inspect.signature(part).parameters.values())
    if len(needed) > len(given) or (len(taken) < len(given) and not free):
        need = ", ".join(given) or "no arguments"
        raise ConfigError(
            f"{name}: expected a constructor that takes {need} by position, got "
            f"{', '.join(one.name for one in taken) or 'none'}; settings come after *, see {guide(part)}"
        )


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def positional(part: type) -> list[str] | None:
    """What Weft gives the constructor of a part by position; None if the contract of a layer does not say."""
    for base in part.__mro__[1:]:
        if base.__module__.startswith("weft.") and "__init__" in vars(base):
            found = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
            return [one.name for one in found if one.kind in POSITIONAL]
    return None if any(base.__module__.startswith("torch.") for base in part.__mro__) else []


def _has_part(room: ModuleType, folder: str, contract: type) -> bool:
    return importlib.util.find_spec(f"{room.__name__}.{folder}.{contract.__name__.lower()}") is not None


def _parts_of_file(room: ModuleType, entry: pkgutil.ModuleInfo, contract: type) -> dict[str, type]:
    """The parts of a file by name: a single one by the file's, several by those of their classes."""
    place = f"{room.__name__}.{entry.name}"
    if entry.ispkg:
        place = f"{place}.{contract.__name__.lower()}"
        if importlib.util.find_spec(place) is None:
            return {}
    own = _own(importlib.import_module(place), contract)
    if len(own) == 1 and place != contract.__module__:
        return {entry.name: own[0]}
    found = {name_of(part): part for part in own}
    if len(found) < len(own):
        names = " and ".join(part.__name__ for part in own)
        raise TypeError(f"{place} defines {names}; a file must define only one part, or their contract too")
    return found


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
