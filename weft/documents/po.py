"""gettext catalogues (.po, .pot): entries without a translation as segments. Read next: plain.py."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from weft.data.pairs import entries
from weft.documents.plain import Plain
from weft.text.numbers import wrong_parts
from weft.text.segments import WrittenSentence


class Po:
    """A catalogue; the lines of entries without a translation are segments.

    `lost` gets the place of each new translation with other placeholders or numbers than its source.
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
                if why := wrong_parts(source, target):
                    self._lost.append(f"{self._name}:{one.linenum}: {why}")
            if "fuzzy" not in one.flags:
                one.flags.append("fuzzy")
        text = str(self._file).rstrip("\n") + "\n"
        return text if self._file.header else text.removeprefix("#\n")


def _done(entry: Any) -> bool:
    return any(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)


def _sources(entry: Any) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
