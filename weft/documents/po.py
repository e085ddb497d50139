"""gettext catalogues (.po, .pot): entries without a translation as segments. Read next: plain.py."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from weft.data.pairs import entries
from weft.documents.plain import Plain
from weft.text.numbers import wrong_parts
from weft.text.placeholders import placeholders
from weft.text.segments import WrittenSentence
from weft.words import base

_FORMS = re.compile(r"nplurals\s*=\s*([1-9])")
_OFTEN = re.compile(r"n\s*>\s*1\b|n\s*%\s*10\s*==\s*1\b")
"""A rule by which the first form stands for more than 1, such as 0 or 21."""
_ONE_FORM = frozenset(("id", "ja", "ka", "km", "ko", "lo", "ms", "my", "th", "vi", "zh"))
"""Languages without a plural, for a template that does not say so."""


class Po:
    """A catalogue; the lines of entries without a translation are segments.

    `lost` gets the place of each new translation with other placeholders or numbers than its source.
    """

    def __init__(self, text: str, name: str, target: str, lost: list[str]) -> None:
        self._name, self._lost = name, lost
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._file = entries(text, name)
        rule = self._file.metadata.get("Plural-Forms", "")
        forms, self._often = _FORMS.search(rule), bool(_OFTEN.search(rule))
        self._forms = int(forms[1]) if forms else 1 if base(target) in _ONE_FORM else 0
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
                count = self._forms or max(2, len(one.msgstr_plural))
                own = one.msgstr_plural
                counted = self._often and placeholders(one.msgid) != placeholders(one.msgid_plural)
                first = int(count == 1 or counted)
                one.msgstr_plural = {n: own.get(n) or there[1 if n else first] for n in range(count)}
            else:
                one.msgstr = there[0]
            for source, target in zip(_sources(one), there, strict=True):
                if why := wrong_parts(source, target):
                    self._lost.append(f"{self._name}:{one.linenum}: {why}")
            if "fuzzy" not in one.flags:
                one.flags.append("fuzzy")
        text = str(self._file).rstrip("\n") + "\n"
        text = text if self._file.header else text.removeprefix("#\n")
        return text.replace("\n", self._end)


def _done(entry: Any) -> bool:
    return (
        all(entry.msgstr_plural.values()) and bool(entry.msgstr_plural)
        if entry.msgid_plural
        else bool(entry.msgstr)
    )


def _sources(entry: Any) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]
