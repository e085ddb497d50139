"""A recipe in memory: values that remember their name and the file and line they came from.

Read next: text.py, which reads them; build.py, which turns them into parts.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.errors import ConfigError

Scalar = str | int | float | bool | None
_LONGEST = 60  # characters of a wrong value that a sentence quotes


class PlacedError(ConfigError):
    """A mistake in a recipe whose sentence already begins with its place."""


@dataclass(frozen=True)
class Entry:
    """One value of a recipe.

    Args:
        name: where it stands in the recipe, such as model.encoder.sizes[0].
        place: where it was written: file:line, or the override.
        value: a scalar, a list of entries, or a dict of entries (then it is a Table).
    """

    name: str
    place: str
    value: "Scalar | list[Entry] | dict[str, Entry]"

    def refuse(self, sentence: str) -> PlacedError:
        """The error that says what is wrong with this value, with its place and name before."""
        return PlacedError(": ".join(part for part in (self.place, self.name, sentence) if part))

    def shown(self) -> str:
        """What this value is, for a sentence: 'abc' (text)."""
        match self.value:
            case None:
                return "nothing (null)"
            case dict():
                return "a table"
            case list():
                return "a list"
            case bool():
                return "true" if self.value else "false"
            case str():
                text = repr(self.value)
                return f"{text[:_LONGEST]}...' (text)" if len(text) > _LONGEST else f"{text} (text)"
            case _:
                text = repr(self.value)
                return text[:_LONGEST] + "..." if len(text) > _LONGEST else text

    def plain(self) -> Any:
        """The value without places: dicts, lists and scalars."""
        match self.value:
            case dict():
                return {key: entry.plain() for key, entry in self.value.items()}
            case list():
                return [entry.plain() for entry in self.value]
            case _:
                return self.value


@dataclass(frozen=True)
class Table(Entry):
    """Keys and their values; a whole recipe is one, and so is each of its sections."""

    value: dict[str, Entry]

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def section(self, key: str, *, optional: bool = False) -> "Table":
        """The table under a key.

        Args:
            key: its name.
            optional: an absent one is an empty table instead of a mistake.

        Raises:
            ConfigError: it is absent, or no table.
        """
        entry = self.value.get(key)
        if entry is None:
            if optional:
                return Table(self.inner(key), self.place, {})
            near = nearest(key, self.value)
            raise self.refuse(f"the section {key!r} is missing{near and f'; is it {near!r}?'}")
        if not isinstance(entry, Table):
            raise entry.refuse(f"expected a table with keys, got {entry.shown()}")
        return entry

    def check_keys(self, known: Iterable[str], *, owner: str = "a recipe") -> None:
        """Refuse a key that nobody reads.

        Raises:
            ConfigError: naming the first one and the nearest known name.
        """
        names = list(known)
        for key, entry in self.value.items():
            if key not in names:
                raise entry.refuse(unknown(key, names, owner=owner, kind="section"))

    def without(self, *keys: str) -> "Table":
        """The same table less some keys, for those that are read elsewhere."""
        return replace(self, value={key: entry for key, entry in self.value.items() if key not in keys})

    def inner(self, key: str) -> str:
        """The full name of one of its keys."""
        return inner(self.name, key)


def inner(name: str, key: str) -> str:
    """The name of a key inside a table of that name; an odd key is quoted.

    Example:
        >>> inner("model.encoder", "sizes"), inner("", "two words")
        ('model.encoder.sizes', "'two words'")
    """
    shown = key if re.fullmatch(r"[\w-]{1,80}", key) else repr(key[:80])
    return f"{name}.{shown}" if name else shown


def nearest(word: str, known: Iterable[str] | Mapping[str, Any]) -> str:
    """The known name that looks most like this one, or nothing."""
    # 0.5 instead of 0.6 lets `sizs` and `hid_size` find their names.
    near = difflib.get_close_matches(word[:80], list(known), 1, 0.5)
    return near[0] if near else ""


def unknown(word: str, known: Iterable[str], *, owner: str, kind: str = "setting") -> str:
    """The sentence for a name that does not exist."""
    names = list(known)
    near = nearest(word, names)
    if near:
        return f"{owner} has no such {kind}; did you mean {near!r}?"
    return f"{owner} has no such {kind}; " + (f"it has {', '.join(names)}" if names else f"it has no {kind}s")
