"""A recipe in memory: values with their name, file and line.

Read next: text.py, which reads them; building.py, which builds parts from them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from weft.errors import ConfigError
from weft.wording import close_name

Scalar = str | int | float | bool | None
_LONGEST = 60  # characters of a wrong value quoted in a message


class PlacedError(ConfigError):
    """An error in a recipe whose message already begins with its place."""


@dataclass(frozen=True)
class Entry:
    """One value of a recipe."""

    name: str  # its path in the recipe, such as model.encoder.sizes[0]
    place: str  # where it was written: file:line, or the override
    value: "Scalar | list[Entry] | dict[str, Entry]"

    def refuse(self, sentence: str) -> PlacedError:
        """An error about this value; its place and name, if that does not say it, precede the message."""
        said = "" if self.place.startswith(f"override {self.name}=") else self.name
        return PlacedError(": ".join(part for part in (self.place, said, sentence) if part))

    def shown(self) -> str:
        """The value for an error message: 'abc' (text)."""
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
        """The value as dicts, lists and scalars, without places."""
        match self.value:
            case dict():
                return {key: entry.plain() for key, entry in self.value.items()}
            case list():
                return [entry.plain() for entry in self.value]
            case _:
                return self.value


@dataclass(frozen=True)
class Table(Entry):
    """Keys and their values; a recipe is a table, and so is each of its sections."""

    value: dict[str, Entry]

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def section(self, key: str, *, optional: bool = False) -> "Table":
        """The table under a key."""
        entry = self.value.get(key)
        if entry is None:
            if optional:
                return Table(inner(self.name, key), self.place, {})
            near = close_name(key, self.value)
            raise self.refuse(f"the section {key!r} is missing{near and f'; is it {near!r}?'}")
        if not isinstance(entry, Table):
            raise entry.refuse(f"expected a table with keys, got {entry.shown()}")
        return entry

    def check_keys(self, known: Iterable[str], *, owner: str = "a recipe") -> None:
        """Raise an error for the first unknown key."""
        names = list(known)
        for key, entry in self.value.items():
            if key not in names:
                raise entry.refuse(unknown(key, names, owner=owner, kind="section"))

    def without(self, *keys: str) -> "Table":
        """The table without some keys."""
        return replace(self, value={key: entry for key, entry in self.value.items() if key not in keys})


def inner(name: str, key: str) -> str:
    """The full name of a key in the table `name`; an unusual key is quoted.

    Example:
        >>> inner("model.encoder", "sizes"), inner("", "two words")
        ('model.encoder.sizes', "'two words'")
    """
    shown = key if re.fullmatch(r"[\w-]{1,80}", key) else repr(key[:80])
    return f"{name}.{shown}" if name else shown


def unknown(word: str, known: Iterable[str], *, owner: str, kind: str = "setting") -> str:
    """The error message for an unknown name."""
    names = list(known)
    near = close_name(word, names)
    if near:
        return f"{owner} has no such {kind}; did you mean {near!r}?"
    return f"{owner} has no such {kind}; " + (f"it has {', '.join(names)}" if names else f"it has no {kind}s")
