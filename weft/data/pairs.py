"""Pairs of texts in translation memories (.tmx), catalogues (.po) and XLIFF, for training data.

A memory is read unit by unit, so that it may be larger than the computer's memory.
Read next: parallel.py, which uses it; ../documents/memories.py, which translates such files.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from weft.data.xml import check_entities, damaged, parsed
from weft.errors import DataError, library
from weft.words import base

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_LINE = re.compile(r"\(line (\d+)\)|:(\d+):")
_TEXT = re.compile(r'(?:(?:msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s*)?"(?:[^"\\]|\\.)*"')
"""A line with a text; polib accepts one without its end and drops the entry."""

ENDINGS = (".tmx", ".po", ".xliff", ".xlf", ".sdlxliff", ".mxliff", ".mqxliff")
"""The endings of files that `pairs` reads."""

_INLINE = ("hi", "g", "mrk", "pc")
_WAITING = ("new", "needs-translation", "initial")


class Variants(NamedTuple):
    """A unit: the `seg` elements of both languages, or None."""

    unit: Any
    source: Any
    target: Any


class Unit(NamedTuple):
    """A text and its translation."""

    line: int
    source: Any
    target: Any  # None if it is missing
    parent: Any


class DocumentPair(NamedTuple):
    """A text and its translation, each without line ends and markup."""

    line: int
    source: str
    target: str


def pairs(parts: Iterable[bytes], name: str, source: str, target: str) -> Iterator[DocumentPair]:
    """The pairs of a file in two languages; units without one of them are left out."""
    ending = PurePath(name).suffix.lower()
    read = {".tmx": _memory, ".po": _catalogue}.get(ending, _xliff)
    found = False
    for pair in read(parts, name, source, target):
        if pair.source and pair.target:
            found = True
            yield pair
    if not found:
        raise DataError(
            f"expected texts in {source!r} and {target!r}, got none; name the languages as the file does",
            path=name,
        )


def languages(parts: Iterable[bytes], name: str) -> tuple[str, str]:
    """The source and the target language that a file names; that of a catalogue's source is "source"."""
    found: tuple[str, str] = ("", "")
    if PurePath(name).suffix.lower() == ".po":
        file = entries(decoded(b"".join(parts), name, "utf-8"), name)
        found = "source", file.metadata.get("Language", "") or "target"
    else:
        for element in _elements(parts, name):
            found = _of_unit(element) if element.tag == "tu" else _languages(element)
            if all(found):
                break
    if not all(found):
        raise DataError(
            "expected texts in two languages, got none; name the languages in the file", path=name
        )
    return found


def _elements(parts: Iterable[bytes], name: str, tags: tuple[str, ...] | None = None) -> Iterator[Any]:
    """The elements of XML with these tags as soon as they are complete, the first as soon as it begins.

    The root comes last, whatever its tag.
    """
    etree = library("lxml.etree", "documents", name)
    parser = etree.XMLPullParser(("start", "end"), tag=tags, resolve_entities=False, no_network=True)
    first = True
    try:
        for part in parts:
            parser.feed(part)
            for event, element in parser.read_events():
                if first:
                    check_entities(element, name)
                if first or event == "end":
                    yield element
                first = False
        yield parser.close()
    except etree.XMLSyntaxError as error:
        raise damaged(error, name) from None


def _of_unit(unit: Any) -> tuple[str, str]:
    """The source language of a unit, or its first, and another one."""
    codes = [one.get(LANGUAGE) or one.get("lang") or "" for one in unit.iter("tuv")]
    header = unit.getroottree().find("header")
    said = unit.get("srclang") or (header.get("srclang") if header is not None else None) or ""
    source = next((code for code in codes if base(code) == base(said)), codes[0] if codes else "")
    return source, next((code for code in codes if base(code) != base(source)), "")


def _memory(parts: Iterable[bytes], name: str, source: str, target: str) -> Iterator[DocumentPair]:
    for element in _elements(parts, name, ("tmx", "tu")):
        if (tag := element.getroottree().getroot().tag) != "tmx":
            raise DataError(f"expected an element tmx, got {tag.rpartition('}')[2]}", path=name, line=1)
        if element.tag == "tu":
            one = variant(element, name, source, target)
            if one.source is not None and one.target is not None:
                yield DocumentPair(element.sourceline, _plain(one.source), _plain(one.target))
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _xliff(parts: Iterable[bytes], name: str, source: str, target: str) -> Iterator[DocumentPair]:
    for unit in units(parsed(b"".join(parts), name), name):
        if unit.target is None or _state(unit) in _WAITING:
            continue
        given = _languages(unit.parent)
        sides = _plain(unit.source), _plain(unit.target)
        if not _fits(given, (source, target)) and _fits(given, (target, source)):
            sides = sides[::-1]
        elif not _fits(given, (source, target)):
            raise DataError(
                f"expected a file in {source!r} and {target!r}, got {' and '.join(map(repr, given))}",
                path=name,
                line=unit.line,
            )
        yield DocumentPair(unit.line, *sides)


def _catalogue(parts: Iterable[bytes], name: str, source: str, target: str) -> Iterator[DocumentPair]:
    file = entries(decoded(b"".join(parts), name, "utf-8"), name)
    turned = base(file.metadata.get("Language", target)) == base(source)
    for entry in file:
        if entry.obsolete or entry.fuzzy:
            continue
        written = [text for _, text in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
        read = [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
        if len(written) < len(read):  # a language with one form
            read = [entry.msgid_plural]
        for left, right in zip(read, written, strict=False):  # it may have many
            sides = " ".join(left.split()), " ".join(right.split())
            yield DocumentPair(entry.linenum, *(sides[::-1] if turned else sides))


def _plain(element: Any) -> str:
    """The text of an element without the codes in it."""
    return " ".join(_text(element).split())


def _text(element: Any) -> str:
    parts = [element.text or ""]
    for child in element:
        inline = isinstance(child.tag, str) and child.tag.rpartition("}")[2] in _INLINE
        parts += [_text(child) if inline else "", child.tail or ""]
    return "".join(parts)


def _state(unit: Any) -> str:
    return str(unit.target.get("state") or unit.parent.get("state") or "")


def _languages(element: Any) -> tuple[str, str]:
    """The languages of the file around a unit; empty if it does not name them."""
    while element is not None:
        for source, target in (("source-language", "target-language"), ("srcLang", "trgLang")):
            if element.get(source) is not None:
                return element.get(source), element.get(target) or ""
        element = element.getparent()
    return "", ""


def _fits(given: tuple[str, str], wanted: tuple[str, str]) -> bool:
    return all(not one or base(one) == base(other) for one, other in zip(given, wanted, strict=True))


def entries(text: str, name: str) -> Any:
    """The entries of a catalogue."""
    polib = library("polib", "documents", name)
    if "msgid" not in text or "\n" not in text:  # polib would take a short text for the name of a file
        raise DataError("expected entries with msgid, got none; give a gettext catalogue", path=name, line=1)
    for number, bare in enumerate(map(str.strip, text.split("\n")), 1):
        if bare.startswith(("msg", '"')) and not _TEXT.fullmatch(bare):
            raise DataError(
                "expected msgid, msgstr or the like and a text in double quotes; correct the line",
                path=name,
                line=number,
            )
    try:
        return polib.pofile(text)
    except (OSError, ValueError, IndexError) as error:
        found = _LINE.search(str(error))
        line = int(next(filter(None, found.groups()))) if found else None
        why = "expected gettext's entries (msgid, msgstr), got something else; correct the line"
        raise DataError(why, path=name, line=line) from None


def variant(unit: Any, name: str, source: str, target: str) -> Variants:
    """A unit; the code of a language also fits one with a region, but the same code fits better."""
    found: dict[str, Any] = {}
    for one in unit.iter("tuv"):
        code, text = one.get(LANGUAGE) or one.get("lang"), one.find("seg")
        if not code or text is None:
            raise DataError(
                "expected a tuv with xml:lang and seg, got one without; repair or remove it",
                path=name,
                line=one.sourceline,
            )
        for wanted in (source, target):
            if code.lower().replace("_", "-") == wanted.lower().replace("_", "-"):
                found[wanted] = text
            elif base(code) == base(wanted):
                found.setdefault(wanted, text)
    return Variants(unit, found.get(source), found.get(target))


def units(root: Any, name: str) -> Iterator[Unit]:
    """The units of a file."""
    space, _, tag = root.tag.rpartition("}")
    if tag != "xliff":
        raise DataError(f"expected an element xliff, got {tag}", path=name, line=root.sourceline)
    space = f"{space}}}" if space else ""
    for parent in root.iter(f"{space}trans-unit", f"{space}segment"):
        source = parent.find(f"{space}source")
        if source is None:
            raise DataError(
                f"expected a source in the element {parent.tag.rpartition('}')[2]}, got none",
                path=name,
                line=parent.sourceline,
            )
        yield Unit(parent.sourceline, source, parent.find(f"{space}target"), parent)


def decoded(data: bytes, name: str, encoding: str) -> str:
    """The text of a file."""
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        place = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise DataError(
            f"expected text in {encoding}, got the byte 0x{data[place : place + 1].hex()}; {_as_utf8(name)}",
            path=name,
            line=data.count(b"\n", 0, place) + 1,
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError("expected text, got a NUL byte; save the file as UTF-8", path=name, line=line)
    return text


def _as_utf8(name: str) -> str:
    """How to have a file in UTF-8; a catalogue also says its encoding inside."""
    if PurePath(name).suffix.lower() not in (".po", ".pot"):
        return "save the file as UTF-8"
    other = PurePath(name).with_suffix(".utf8.po")
    return f"convert it: msgconv -t UTF-8 {shlex.quote(name)} -o {shlex.quote(str(other))}"
