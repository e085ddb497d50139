"""Convert YAML 1.2 to entries with line numbers, and back; change settings in a text and keep its comments.

A recipe is untrusted data: anchors, aliases, tags, duplicate keys and multiple documents are errors, size
and depth are limited, and only text, numbers, booleans, lists and tables are ever built. The library
ruamel.yaml parses the syntax; scalars follow the core schema of YAML 1.2 (section 10.3), where `no` is text
and `1e-3` is a number. Read next: recipe.py.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml import events as ev
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.tag import Tag

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


MAX_DEPTH = 50
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_PLAIN = re.compile(r"[A-Za-z_/](?:[\w./+-]| (?! |$))*", re.ASCII)
_MAX_DIGITS = 40
_MAX_ALIASES, _MAX_REPEATED = 1000, 1000


def parse(text: str, file: str, *, name: str = "", place: str = "", tagged: bool = False) -> Entry:
    """Parse a text with a single YAML document."""
    return _Reader(file, place, tagged).document(text, name)


def dump(plain: Any) -> str:
    """YAML that `parse` converts back to the same dicts, lists and scalars.

    Example:
        >>> print(dump({"source": "no", "sizes": [256, 256], "tag": "1e-3"}), end="")
        source: no
        sizes: [256, 256]
        tag: "1e-3"
    """
    out = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.width, yaml.allow_unicode = 100, True
    whole = [ev.StreamStartEvent(), ev.DocumentStartEvent(explicit=False), *_events(plain)]
    yaml.emit([*whole, ev.DocumentEndEvent(explicit=False), ev.StreamEndEvent()], out)
    return out.getvalue().removesuffix("...\n")


def scalar(text: str) -> Scalar:
    """The value of an unquoted scalar in the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > _MAX_DIGITS:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _read(text: str) -> Iterable[Any]:
    """The events of a text. A command reads its recipe several times, so those of short ones are kept."""
    return _kept(text) if len(text) < 20_000 else _parsed(text)


@lru_cache(16)
def _kept(text: str) -> tuple[Any, ...]:
    return tuple(_parsed(text))


def _parsed(text: str) -> Iterator[Any]:
    return YAML(typ="safe", pure=True).parse(text)


class _Reader:
    """Makes entries of events; each node takes the events that belong to it."""

    def __init__(self, file: str, place: str, tagged: bool) -> None:
        self.file = file
        self.fixed = place
        self.tagged = tagged
        self.anchors: dict[str, Entry] = {}
        self.aliases = 0

    def document(self, text: str, name: str) -> Entry:
        try:
            return self._document(_read(text), name)
        except PlacedError:
            raise
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            why = " ".join(str(part) for part in (error.problem, error.context) if part)
            if mark and error.context_mark and error.context_mark.line != mark.line:
                why += f" that begins in line {error.context_mark.line + 1}"
            raise self._not_yaml(mark.line + 1 if mark else 1, why) from error
        except (YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
            # ruamel.yaml raises built-in errors for unusual escapes and directives
            raise self._not_yaml(0, " ".join(str(error).split())[:120]) from error

    def _document(self, events: Iterable[Any], name: str) -> Entry:
        whole: Entry | None = None
        events = iter(events)
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, ev.DocumentStartEvent):
                if whole is not None:
                    raise self._refuse(line, "expected one document, got a second; remove the ---")
                if event.tags or event.version not in (None, (1, 2)):
                    raise self._refuse(line, "% directives are not allowed; remove the line")
            elif isinstance(event, ev.NodeEvent):
                whole = self._node(event, events, name, self._place(line), 0)
        return whole if whole is not None else Entry(name, self._place(1), None)

    def _node(self, event: Any, events: Iterator[Any], name: str, place: str, depth: int) -> Entry:
        """The value that begins with an event."""
        line = event.start_mark.line + 1
        if isinstance(event, ev.AliasEvent):
            return self._repeated(event.anchor, line, depth)
        self._check(event, line, depth)
        if isinstance(event, ev.MappingStartEvent):
            entry: Entry = self._table(events, name, place, depth + 1)
        elif isinstance(event, ev.SequenceStartEvent):
            values: list[Entry] = []
            for one in _inside(events):
                inside = self._place(one.start_mark.line + 1)
                values.append(self._node(one, events, f"{name}[{len(values)}]", inside, depth + 1))
            entry = Entry(name, place, values)
        else:
            entry = _scalar_entry(event, name, place)
        if event.anchor is not None:
            self.anchors[event.anchor] = entry
        return entry

    def _table(self, events: Iterator[Any], name: str, place: str, depth: int) -> Table:
        table = Table(name, place, {})
        for event in _inside(events):
            line = event.start_mark.line + 1
            if isinstance(event, ev.AliasEvent) and self.tagged:
                raise self._refuse(line, f"the alias *{event.anchor} is a key; write it out")
            key = self._node(event, events, name, self._place(line), depth)
            if not isinstance(key.value, str):
                raise key.refuse(f"expected text as a key, got {key.shown()}; put it in quotes")
            inside = inner(name, key.value)
            if key.value in table.value:
                first = table.value[key.value].place
                raise Entry(inside, key.place, None).refuse(
                    f"duplicate key, first given at {first}; remove one"
                )
            # report the key's line, even if the value is on a later line
            table.value[key.value] = self._node(next(events), events, inside, key.place, depth)
        return table

    def _repeated(self, name: str, line: int, depth: int) -> Entry:
        """The value that an alias names; few and small ones only, because each may repeat others."""
        if not self.tagged:
            raise self._refuse(line, f"aliases such as *{name} are not allowed; write the value out")
        found = self.anchors.get(name)
        self.aliases += 1
        if found is None or not depth or self.aliases > _MAX_ALIASES or not _is_small(found):
            raise self._refuse(line, f"the alias *{name} cannot be followed; write the value out")
        return found

    def _check(self, event: Any, line: int, depth: int) -> None:
        if event.anchor is not None and not self.tagged:
            raise self._refuse(
                line, f"anchors such as &{event.anchor} are not allowed; write the value where it belongs"
            )
        if event.tag is not None and not self.tagged:
            raise self._refuse(
                line, f"tags such as {str(event.tag)[:60]!r} are not allowed; write a plain value"
            )
        if depth >= MAX_DEPTH:
            raise self._refuse(line, f"expected at most {MAX_DEPTH} levels of nesting, got more")

    def _place(self, line: int) -> str:
        return self.fixed or f"{self.file}:{line}"

    def _refuse(self, line: int, sentence: str) -> PlacedError:
        return PlacedError(f"{self._place(line)}: {sentence}")

    def _not_yaml(self, line: int, why: str) -> PlacedError:
        place = self._place(line) if line else self.fixed or self.file
        return PlacedError(
            f"{place}: this is not YAML: {why}; look at quotes, colons and indentation near it"
        )


def _inside(events: Iterator[Any]) -> Iterator[Any]:
    """The first events of the nodes in a list or a table, up to its end."""
    for event in events:
        if isinstance(event, ev.CollectionEndEvent):
            return
        yield event


def _scalar_entry(event: Any, name: str, place: str) -> Entry:
    quoted = event.style is not None and event.style != ""
    try:
        return Entry(name, place, event.value if quoted else scalar(event.value))
    except ValueError as error:
        raise Entry(name, place, None).refuse(f"expected a shorter number, got {error}") from error


def _is_small(entry: Entry | None) -> bool:
    """Whether a value has at most _MAX_REPEATED parts, those of its aliases included, at a small depth."""
    waiting, count = [(entry, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        count += 1
        if count > _MAX_REPEATED or depth > MAX_DEPTH:
            return False
        inner = one.value if one is not None else None
        parts = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        waiting += [(part, depth + 1) for part in parts]
    return True


def _events(plain: Any) -> Iterator[Any]:
    match plain:
        case dict():
            yield ev.MappingStartEvent(None, None, True, flow_style=not plain)
            for key, value in plain.items():
                yield from _events(key)
                yield from _events(value)
            yield ev.MappingEndEvent()
        case list() | tuple():
            short = not any(isinstance(value, dict | list | tuple) for value in plain)
            yield ev.SequenceStartEvent(None, None, True, flow_style=short)
            for value in plain:
                yield from _events(value)
            yield ev.SequenceEndEvent()
        case str():
            yield _scalar_event(plain, quoted=_needs_quotes(plain))
        case None | bool():
            yield _scalar_event({None: "null", True: "true", False: "false"}[plain])
        case _:
            yield _scalar_event({"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(repr(plain), repr(plain)))


def _scalar_event(text: str, *, quoted: bool = False) -> Any:
    # (True, True) writes no tag, but the emitter requires a Tag object for an empty scalar
    return ev.ScalarEvent(None, Tag(suffix=""), (True, True), text, style='"' if quoted else None)


def _needs_quotes(text: str) -> bool:
    # quote unless certainly safe, because the emitter itself leaves `[?0]` and `''` unquoted
    return not _PLAIN.fullmatch(text) or not isinstance(scalar(text), str)


def edited(text: str, changes: Mapping[str, Any]) -> str:
    r"""A recipe's text with other values; its comments and its layout stay."""
    wanted = parse(text, "recipe").plain()
    for name, value in changes.items():
        _set(wanted, name, value)
    try:
        editor = YAML(typ="rt", pure=True)  # keeps comments; builds no objects either
        editor.width, editor.preserve_quotes = 10_000, True
        tree = editor.load(text)
        for name, value in changes.items():
            _set(tree, name, _styled(value))
        out = io.StringIO()
        editor.dump(tree, out)
        found = "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])
        if parse(found, "recipe").plain() == wanted:
            return found
    except (YAMLError, ConfigError, ValueError, TypeError, AttributeError):
        pass  # an unusual layout: without its comments
    return dump(wanted)


def _set(tree: Any, name: str, value: Any) -> None:
    *path, last = name.split(".")
    for key in path:
        inner = tree.get(key)
        if not isinstance(inner, dict):
            inner = _styled({"use": inner} if isinstance(inner, str) else {})
            tree[key] = inner
        tree = inner
    tree[last] = value


def _styled(value: Any) -> Any:
    """Lists and tables on one line."""
    if isinstance(value, dict):
        table = CommentedMap({key: _styled(one) for key, one in value.items()})
        table.fa.set_flow_style()
        return table
    if isinstance(value, list | tuple):
        row = CommentedSeq([_styled(one) for one in value])
        row.fa.set_flow_style()
        return row
    return value
