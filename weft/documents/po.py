"""gettext catalogues (.po, .pot): entries without a translation as segments. Read next: plain.py."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from weft.documents.placeholders import differing
from weft.documents.plain import Plain
from weft.documents.segments import WrittenSentence
from weft.errors import DataError, library

_LINE = re.compile(r"\(line (\d+)\)|:(\d+):")
_TEXT = re.compile(r'(?:(?:msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s*)?"(?:[^"\\]|\\.)*"')
"""A line with a text; polib accepts one without its end and drops the entry."""


class Po:
    """A catalogue; the lines of entries without a translation are segments.

    `lost` gets the place of each new translation whose placeholders are not those of its source.
    """

    def __init__(self, text: str, name: str, lost: list[str]) -> None:
        self._name, self._lost = name, lost
        self._file = entries(text, name)
        self._waiting = [
            one for one in self._file if one.msgid and not one.obsolete and not one.fuzzy and not _done(one)
        ]
        self._texts = [[Plain(text) for text in _sources(one)] for one in self._waiting]
        self.segments = [segment for texts in self._texts for text in texts for segment in text.segments]

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The catalogue with the new translations, marked as fuzzy: to be reviewed."""
        rest: Iterator[WrittenSentence] = iter(found)
        for one, texts in zip(self._waiting, self._texts, strict=True):
            there = [text.written(list(islice(rest, len(text.segments)))) for text in texts]
            if one.msgid_plural:
                one.msgstr_plural = {n: there[min(n, 1)] for n in sorted(one.msgstr_plural) or (0, 1)}
            else:
                one.msgstr = there[0]
            for source, target in zip(_sources(one), there, strict=True):
                if why := differing(source, target):
                    self._lost.append(f"{self._name}:{one.linenum}: {why}")
            if "fuzzy" not in one.flags:
                one.flags.append("fuzzy")
        text = str(self._file).rstrip("\n") + "\n"
        return text if self._file.header else text.removeprefix("#\n")


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


def _done(entry: Any) -> bool:
    return any(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


def _sources(entry: Any) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
