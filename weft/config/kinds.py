"""Check values against type annotations, and describe annotations in words.

This handles plain kinds: numbers, text, choices and lists of them. Parts, annotated by their contract, are
built by a function that building.py passes in.
"""

import collections.abc
import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from weft.config.text import Entry, PlacedError, Table
from weft.setting_types import Bounds, Whole
from weft.wording import close_name


class SettingValue(NamedTuple):
    """A checked value of a recipe."""

    value: Any  # for the constructor
    plain: Any  # for the resolved recipe, with all defaults


class NotASetting(TypeError):
    """An annotation for which a recipe cannot give a value: the model sets that argument."""


MakePart = Callable[[Entry, type, bool], SettingValue]
"""Takes an entry, a contract, and whether to build an object instead of a factory."""

_WORDS: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "truth values"),
    str: ("text", "texts"),
    Path: ("a path", "paths"),
    Any: ("a value", "values"),
    types.NoneType: ("null", "nulls"),
}
_FORMS: dict[Any, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    bool: (bool,),
    str: (str,),
    Path: (str,),
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
_TABLES = (dict, collections.abc.Mapping)


def is_contract(kind: Any) -> bool:
    """Whether an annotation is the abstract class of a room."""
    return inspect.isclass(kind) and inspect.isabstract(kind) and kind.__module__.startswith("weft.")


def contract_of(kind: Any) -> tuple[type, bool] | None:
    """The contract that an annotation names, and whether it expects an object instead of a factory."""
    if is_contract(kind):
        return kind, True
    if get_origin(kind) is collections.abc.Callable and is_contract(get_args(kind)[-1]):
        return get_args(kind)[-1], False
    return None


def words(kind: Any, *, many: bool = False) -> str:
    """An annotation in words, for readers who do not know Python.

    Example:
        >>> words(tuple[int, ...]), words(Literal["late", "input"]), words(float | None)
        ('a list of whole numbers', "one of 'late', 'input'", 'a number or null')
    """
    if kind in _WORDS:
        return _WORDS[kind][many]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        ranges = [one.words() for one in inner[1:] if isinstance(one, Bounds) and not many]
        return " ".join([words(inner[0], many=many), *ranges])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if origin in (Union, types.UnionType):
        return " or ".join(words(one) for one in inner)
    if origin in _LISTS or kind in _LISTS:
        if not inner:
            return "a list"
        if _is_fixed(kind):
            alike = len({*inner}) == 1 < len(inner) and _bare_kind(inner[0]) in _WORDS
            kinds = f" {words(inner[0], many=True)}" if alike else ": " + ", ".join(map(words, inner))
            return f"a list of {len(inner)}{kinds}"
        return f"{'lists' if many else 'a list'} of {words(inner[0], many=True)}"
    if origin in _TABLES or kind in _TABLES:
        return f"a table of {words(inner[1], many=True)}" if inner else "a table"
    part = contract_of(kind)
    if part:
        return _article(part[0].__name__.lower()) if not many else part[0].__name__.lower() + "s"
    return "a table of settings"


def convert(entry: Entry, kind: Any, make_part: MakePart) -> SettingValue:
    """Convert an entry to the annotated type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        made = convert(entry, inner[0], make_part)
        for bounds in inner[1:]:
            if isinstance(bounds, Bounds) and not bounds.hold(made.value):
                raise entry.refuse(f"expected {words(kind)}, got {entry.shown()}")
        return made
    part = contract_of(kind)
    if part:
        return make_part(entry, *part)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return make_part(entry, kind, True)
    if kind is Any:
        return SettingValue(entry.plain(), entry.plain())
    if origin is Literal:
        return _choice(entry, inner)
    if origin in (Union, types.UnionType):
        return _union(entry, kind, make_part)
    if origin in _LISTS or kind in _LISTS:
        return _list(entry, kind, make_part)
    if origin in _TABLES or kind in _TABLES:
        return _table(entry, kind, make_part)
    if kind in _WORDS:
        return _scalar(entry, kind)
    raise NotASetting(f"{entry.name}: {kind} cannot be given in a recipe")


def bounded(kind: Any) -> Any:
    """The same kind; whole numbers without bounds of their own are at least 0."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is int:
        return Whole
    if origin in _LISTS:
        return origin[tuple(map(bounded, inner))]
    return Union[tuple(map(bounded, inner))] if _is_union(kind) else kind  # noqa: UP007  of any number


def takes_null(kind: Any) -> bool:
    """Whether null is a value of this kind."""
    bare = _bare_kind(kind)
    return bare is Any or (_is_union(bare) and types.NoneType in get_args(bare))


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _scalar(entry: Entry, kind: Any) -> SettingValue:
    value = entry.value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if not math.isfinite(number):
            raise entry.refuse(f"expected a finite number, got {entry.shown()}")
        return SettingValue(number, number)
    if kind is Path and isinstance(value, str):
        # absolute in the resolved recipe, because a run may be used from another directory
        return SettingValue(Path(value), str(Path(value).expanduser().absolute()))
    if type(value) is not kind:
        quotes = " (in quotes)" if kind in (str, Path) and isinstance(value, int | float) else ""
        raise entry.refuse(f"expected {words(kind)}{quotes}, got {entry.shown()}")
    return SettingValue(value, value)


def _choice(entry: Entry, choices: Sequence[Any]) -> SettingValue:
    for choice in choices:
        if entry.value == choice and type(entry.value) is type(choice):
            return SettingValue(choice, choice)
    named = [choice for choice in choices if isinstance(choice, str)]
    near = close_name(entry.value, named) if isinstance(entry.value, str) else ""
    hint = f"; did you mean {near!r}?" if near else ""
    raise entry.refuse(f"expected {words(Literal[tuple(choices)])}, got {entry.shown()}{hint}")


def _union(entry: Entry, kind: Any, make_part: MakePart) -> SettingValue:
    choices = [one for one in get_args(kind) if one is not types.NoneType]
    if entry.value is None and len(choices) < len(get_args(kind)):
        return SettingValue(None, None)
    lists = [one for one in choices if get_origin(one) in _LISTS or one in _LISTS]
    if len(lists) == 1:  # a list, or one thing: the entry says which, and that one's own error says more
        choices = lists if isinstance(entry.value, list) else [one for one in choices if one not in lists]
    if isinstance(entry, Table):
        choices = [one for one in choices if _takes_table(one)] or choices
    foreign = []
    for one in choices:
        try:
            return convert(entry, one, make_part)
        except PlacedError:
            table = isinstance(entry, Table) and _takes_table(one)
            if len(choices) == 1 and (contract_of(one) or one in lists or table):
                raise  # the part's own error says more
        except NotASetting as error:
            foreign.append(error)
    if len(foreign) == len(choices):
        raise foreign[0]
    raise entry.refuse(f"expected {words(kind)}, got {entry.shown()}")


def _takes_table(kind: Any) -> bool:
    table = get_origin(kind) in _TABLES or kind in _TABLES or dataclasses.is_dataclass(kind)
    return table or contract_of(kind) is not None


def _bare_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_fixed(kind: Any) -> bool:
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


def _list(entry: Entry, kind: Any, make_part: MakePart) -> SettingValue:
    inner = get_args(kind) or (Any,)
    if not isinstance(entry.value, list):
        kinds = [_bare_kind(one) for one in inner if one is not Ellipsis]
        fits = all(type(entry.value) in _FORMS.get(one, ()) for one in kinds)
        items = [_bare(entry.value)] * (len(inner) if _is_fixed(kind) else 1)
        hint = f" such as [{', '.join(items)}]" if fits else ""
        raise entry.refuse(f"expected {words(kind)}{hint}, got {entry.shown()}")
    if _is_fixed(kind):
        if len(entry.value) != len(inner):
            raise entry.refuse(f"expected {words(kind)}, got a list of {len(entry.value)}")
        wanted: Sequence[Any] = inner
    else:
        wanted = [inner[0]] * len(entry.value)
    made = [convert(one, want, make_part) for one, want in zip(entry.value, wanted, strict=True)]
    values = [one.value for one in made]
    is_list = kind is list or get_origin(kind) is list
    return SettingValue(values if is_list else tuple(values), [one.plain for one in made])


def _table(entry: Entry, kind: Any, make_part: MakePart) -> SettingValue:
    if not isinstance(entry, Table):
        raise entry.refuse(f"expected {words(kind)}, got {entry.shown()}")
    want = (get_args(kind) or (str, Any))[1]
    made: Mapping[str, SettingValue] = {
        key: convert(one, want, make_part) for key, one in entry.value.items()
    }
    return SettingValue(
        {key: one.value for key, one in made.items()}, {key: one.plain for key, one in made.items()}
    )


def _bare(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:40]


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
