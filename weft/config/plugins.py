"""The user's own packages, whose parts recipes and options may name (--plugin). Read next: building.py."""

import importlib.util
import re
import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from types import FrameType

from weft.config.building import named
from weft.config.text import Entry
from weft.errors import ConfigError
from weft.rooms import guide, path_of


def check_plugins(plugins: Collection[str]) -> None:
    """Check that the packages can be imported, from the working directory if necessary."""
    for name in plugins:
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            found = importlib.util.find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ConfigError(
                f"--plugin {name}: no package of that name can be imported; "
                "install it, or start weft in the directory that contains it"
            )


def named_part(option: str, name: str, contract: type, plugins: Collection[str] = ()) -> type:
    """The part named by a command-line option."""
    check_plugins(plugins)
    return named(Entry("", option, name), contract, plugins=plugins)


def explained_failure(error: Exception, plugins: Collection[str]) -> str:
    """One sentence about an exception while parts of plugins were in use: which part, where, what to read."""
    why = " ".join(str(error).split()) or "without a message"
    why = why if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {why}"
    more = "WEFT_TRACEBACK=1 shows where it was raised"
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        part = type(frame.f_locals.get("self"))
        if _inside(frame.f_globals.get("__name__", ""), plugins):
            page = guide(part) if _inside(part.__module__, plugins) else "CONTRIBUTING.md"
            return f"{_place(frame, line)}: {why}; see {page}, and {more}"
        if _inside(part.__module__, plugins):
            return f"{path_of(part)}: {why}; see {guide(part)}, and {more}"
    about = _named_in(error, plugins)
    if about is not None:
        return f"{path_of(about)}: {why}; see {guide(about)}, and {more}"
    return f"--plugin {', '.join(plugins)}: a part of it did not do what Weft expects, {why}; {more}"


def _inside(module: str, plugins: Collection[str]) -> bool:
    return module.partition(".")[0] in {name.partition(".")[0] for name in plugins}


def _place(frame: FrameType, line: int) -> str:
    path = Path(frame.f_code.co_filename)
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{path}:{line}: {frame.f_code.co_qualname}"


def _named_in(error: Exception, plugins: Collection[str]) -> type | None:
    """The class of a plugin that an error of Python is about: its object, or a constructor in its message."""
    if isinstance(error, AttributeError) and _inside(type(error.obj).__module__, plugins):
        return type(error.obj)
    called = re.match(r"(\w+)\.\w+\(\)", str(error))
    modules = [module for name, module in list(sys.modules.items()) if called and _inside(name, plugins)]
    found = [getattr(module, called[1], None) for module in modules] if called else []
    classes = {one for one in found if isinstance(one, type)}
    return classes.pop() if len(classes) == 1 else None
