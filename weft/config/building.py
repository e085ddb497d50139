"""Build objects from tables: names select parts, settings are checked against signatures.

A part is named by its file or class (`use: lstm`, or `cell: lstm` if it needs no settings) and found in the
room of its contract, which the constructor's annotation names: `Callable[..., Cell]` expects a factory,
`Cell` an object. A contract's room is where it stands, so a new room needs no entry here. A part's keyword-
only arguments are settings of the recipe; the others, and those given to `build`, are set by the model. Read
next: ../rooms.py, kinds.py.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from weft import rooms
from weft.config.kinds import (
    NotASetting,
    SettingValue,
    bounded,
    convert,
    is_contract,
    takes_null,
    words,
)
from weft.config.text import Entry, PlacedError, Table, unknown
from weft.errors import ConfigError

T = TypeVar("T")
_NOTHING = inspect.Parameter.empty


def build(table: Entry, target: Callable[..., T], /, *, plugins: Collection[str] = (), **given: Any) -> T:
    """Build the object that a table describes."""
    made: T = built(table, target, plugins=plugins, **given).value
    return made


def built(
    table: Entry, target: Callable[..., Any], /, *, plugins: Collection[str] = (), **given: Any
) -> SettingValue:
    """The object as from `build`, and the table with all defaults, as a run's recipe.yaml has it."""
    return _Builder(plugins).made(table, target, given)


def named(entry: Entry, contract: type, *, plugins: Collection[str] = ()) -> type:
    """The class that an entry names, by its name in the contract's room or by a dotted path in a plugin."""
    name = entry.value
    if not isinstance(name, str):
        raise entry.refuse(f"expected the name of {words(contract)}, got {entry.shown()}")
    if "." in name:
        return _plugged(entry, name, contract, plugins)
    try:
        return rooms.find(rooms.room_of(contract), contract, name[:80])
    except ConfigError as error:
        raise entry.refuse(str(error)) from None


def described(target: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The annotation and the default of each setting that a recipe may give a class or a function.

    A default is what a recipe would write, None where it could not; `inspect.Parameter.empty` if required.
    """
    found = _settings(target)[1]
    return {name: (kind, _shown_default(default)) for name, (kind, default) in found.items()}


def _shown_default(default: Any) -> Any:
    if default is _NOTHING or isinstance(default, Path):
        return default
    plain = _default_setting(default)
    return None if plain is _NOTHING else plain


def _plugged(entry: Entry, name: str, contract: type, plugins: Collection[str]) -> type:
    package = name.split(".")[0]
    if not all(word.isidentifier() for word in name.split(".")):
        raise entry.refuse(
            f"expected the name of {words(contract)} or package.module.Class, got {name[:80]!r}"
        )
    if package not in plugins:
        raise entry.refuse(
            f"{name[:80]!r} is code from outside Weft; if you trust it, "
            f"allow it with --plugin {package[:80]} (in Python plugins=[{package[:80]!r}])"
        )
    module, _, last = name.rpartition(".")
    try:
        part = getattr(importlib.import_module(module), last)
    except Exception as error:
        why = " ".join(str(error).split())
        kind = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise entry.refuse(
            f"{name!r} cannot be imported: {kind}{why}; expected package.module.Class"
        ) from error
    if not (inspect.isclass(part) and issubclass(part, contract)):
        need = f"{contract.__module__}.{contract.__name__}"
        raise entry.refuse(f"{name!r} is not a {contract.__name__}; it must extend {need}")
    try:
        rooms.check_complete(part)
    except ConfigError as error:
        raise entry.refuse(str(error)) from None
    return part


class _Setting(NamedTuple):
    kind: Any
    default: Any


class _Builder:
    def __init__(self, plugins: Collection[str]) -> None:
        self.plugins = frozenset(plugins)

    def made(self, entry: Entry, target: Callable[..., Any], given: dict[str, Any]) -> SettingValue:
        """Build the object."""
        factory, plain = self.settled(entry, target, given)
        try:
            return SettingValue(factory(**given), plain)
        except PlacedError:
            raise
        except ValueError as error:
            raise _placed(entry, " ".join(str(error).split())) from error

    def settled(self, entry: Entry, target: Callable[..., Any], given: dict[str, Any]) -> SettingValue:
        """A factory with all settings bound, which takes the given arguments."""
        if is_contract(target):
            assert isinstance(target, type)
            return self.part(entry, target, given)
        if not isinstance(entry, Table):
            raise entry.refuse(f"expected a table of settings, got {entry.shown()}")
        arguments, plain = self._arguments(entry, target, given)
        return SettingValue(functools.partial(target, **arguments), plain)

    def part(self, entry: Entry, contract: type, given: dict[str, Any]) -> SettingValue:
        """A factory for the part that an entry names."""
        if isinstance(entry.value, str):
            name, table = entry, Table(entry.name, entry.place, {})
        elif not isinstance(entry, Table):
            need = f"the name of {words(contract)}, or a table with use:"
            raise entry.refuse(f"expected {need}, got {entry.shown()}")
        elif "use" in entry:
            name, table = entry.value["use"], entry.without("use")
        else:
            names = ", ".join(sorted(rooms.parts(rooms.room_of(contract), contract)))
            raise entry.refuse(
                f"the table does not say which {contract.__name__.lower()}; add use: and one of {names}"
            )
        part = named(name, contract, plugins=self.plugins)
        arguments, plain = self._arguments(table, part, given)
        factory = functools.partial(part, **arguments) if arguments else part
        return SettingValue(factory, {"use": name.value, **plain})

    def _arguments(
        self, table: Table, target: Callable[..., Any], given: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Checked settings for a constructor, and the same for the resolved recipe with all defaults."""
        table = _by_names_of_today(table, getattr(target, "renamed", {}))
        owner = table.name or target.__name__
        if inspect.isclass(target) and _is_part(target):
            owner = target.__name__
        own, open_settings = _settings(target)
        known = {name: one for name, one in open_settings.items() if name not in given}
        for key, entry in table.value.items():
            if key not in known:
                part = target if inspect.isclass(target) and _is_part(target) else None
                placed = None if part is None else rooms.positional(part)
                if part and placed is not None and key in own and key not in given and key not in placed:
                    raise entry.refuse(
                        f"{owner} takes {key} by position; write * before it in the constructor, or "
                        f"@dataclass(kw_only=True), see {rooms.guide(part)}"
                    )
                if key in own or key in given:
                    raise entry.refuse("set by the model itself; remove the line")
                inside = _inside(key, known)
                if inside:
                    raise entry.refuse(f"{owner} has no such setting; did you mean {inside!r}?")
                raise entry.refuse(unknown(key, known, owner=owner))
        arguments, plain = {}, {}
        for name, (kind, default) in known.items():
            if name in table and not _unsets(table.value[name], kind, default):
                own_part = target.__module__.startswith("weft.")
                try:
                    settled = convert(table.value[name], bounded(kind) if own_part else kind, self._make_part)
                except NotASetting:
                    raise table.value[name].refuse("set by the model itself; remove the line") from None
                arguments[name], plain[name] = settled
            elif default is _NOTHING:
                raise table.refuse(f"{owner} needs the setting {name!r}: {words(kind)}")
            else:
                setting = _default_setting(default)
                plain |= {} if setting is _NOTHING else {name: setting}
        return arguments, plain

    def _make_part(self, entry: Entry, contract: type, ready: bool) -> SettingValue:
        return self.made(entry, contract, {}) if ready else self.part(entry, contract, {})


def _by_names_of_today(table: Table, renamed: Mapping[str, str]) -> Table:
    """The table with settings that an older recipe calls by their earlier names."""
    for old, new in renamed.items():
        if old in table and new in table:
            raise table.value[old].refuse(f"is now called {new}, which is given too; remove one of them")
        named = {new if key == old else key: entry for key, entry in table.value.items()}
        table = dataclasses.replace(table, value=named)
    return table


def _unsets(entry: Entry, kind: Any, default: Any) -> bool:
    """Whether an override such as training.max_epochs=null restores the default, as no value can be null."""
    given = entry.value is None and entry.place.startswith("override ")
    return given and default is not _NOTHING and not takes_null(kind)


def _settings(target: Callable[..., Any]) -> tuple[set[str], dict[str, _Setting]]:
    """The names of all arguments, and the settings among them that a recipe may set."""
    constructor: Any = target
    if inspect.isclass(target):
        constructor = target.__init__ if target.__init__ is not object.__init__ else target.__new__
    hints = get_type_hints(constructor, include_extras=True)
    parameters = inspect.signature(target).parameters
    extends_contract = inspect.isclass(target) and any(is_contract(base) for base in target.__mro__)
    may = {
        name: _Setting(hints.get(name, Any), one.default)
        for name, one in parameters.items()
        if one.kind is one.KEYWORD_ONLY or (one.kind is one.POSITIONAL_OR_KEYWORD and not extends_contract)
    }
    if dataclasses.is_dataclass(target):
        for one in dataclasses.fields(target):
            if one.name in may and one.default_factory is not dataclasses.MISSING:
                may[one.name] = may[one.name]._replace(default=one.default_factory())
    return set(parameters), may


def _inside(key: str, known: Mapping[str, _Setting]) -> str:
    """The full name of a key that is a setting of one of the default parts: optimiser.lr for lr; else ""."""
    for name, (_, default) in known.items():
        part = default.func if isinstance(default, functools.partial) else default
        part = part if inspect.isclass(part) else type(part)
        if (dataclasses.is_dataclass(part) or _is_part(part)) and key in _settings(part)[1]:
            return f"{name}.{key}"
    return ""


def _default_setting(default: Any) -> Any:
    """A default as written in a recipe; _NOTHING if it cannot be written."""
    part, own = default, {}
    if isinstance(default, functools.partial):
        part, own = default.func, default.keywords
    if inspect.isclass(part) and _is_part(part):
        defaults = {
            name: _default_setting(own.get(name, one.default)) for name, one in _settings(part)[1].items()
        }
        return {"use": _name(part), **{key: one for key, one in defaults.items() if one is not _NOTHING}}
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        values = {
            one.name: _default_setting(getattr(default, one.name)) for one in dataclasses.fields(default)
        }
        return {"use": _name(type(default)), **values} if _is_part(type(default)) else values
    if isinstance(default, list | tuple):
        items = [_default_setting(one) for one in default]
        return _NOTHING if _NOTHING in items else items
    if isinstance(default, Path):
        return str(default.absolute())
    return default if default is None or isinstance(default, str | int | float | bool) else _NOTHING


def _is_part(part: type) -> bool:
    return any(is_contract(base) for base in part.__mro__[1:])


def _name(part: type) -> str:
    inside = part.__module__.startswith("weft.")
    return rooms.name_of(part) if inside else rooms.path_of(part)


def _placed(entry: Entry, sentence: str) -> PlacedError:
    """A constructor's error, placed at the line of the key that its message begins with, if any."""
    if isinstance(entry, Table):
        for key, one in entry.value.items():
            for start in (f"{one.name}: ", f"{key}: "):
                if sentence.startswith(start):
                    return one.refuse(sentence.removeprefix(start))
    return entry.refuse(sentence.removeprefix(f"{entry.name}: "))
