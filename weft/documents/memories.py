"""Catalogues (.po, .pot), XLIFF 1.2 and 2, and memories (.tmx): units without a translation as segments.

Read next: plain.py; markup.py; ../data/pairs.py, which reads such files for training.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from weft.data.pairs import LANGUAGE, Unit, Variants, entries, units, variant
from weft.data.xml import parsed, rewritten
from weft.documents.markup import MarkupTexts, Role
from weft.documents.plain import Plain
from weft.errors import DataError
from weft.text.kept import placeholders, wrong_parts
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


_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


class Xliff:
    """A file of translation units; those without a translation are segments.

    `lost` gets the place of each new target with other placeholders or numbers than its source.
    """

    def __init__(self, data: bytes, name: str, source: str, target: str, lost: list[str]) -> None:
        self._data, self._name, self._lost = data, name, lost
        self._root = parsed(data, name)
        _check_languages(self._root, name, source, target)
        self._waiting: list[Unit] = []
        for unit in units(self._root, name):
            done = unit.target is not None and _translated(unit)
            if "".join(unit.source.itertext()).strip() and not done and not _untranslated(unit.parent):
                self._waiting.append(unit._replace(target=_target(unit, target)))
        self._texts = MarkupTexts([unit.target for unit in self._waiting], _xliff_role)
        self.segments = self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The file with the new translations, marked as such."""
        self._texts.fill(found)
        for unit in self._waiting:
            if why := wrong_parts(*("".join(one.itertext()) for one in (unit.source, unit.target))):
                self._lost.append(f"{self._name}:{unit.line}: {why}")
                if unit.parent.get("state") is not None:
                    unit.parent.set("state", "initial")
        return rewritten(self._root, self._data)


def _check_languages(root: Any, name: str, source: str, target: str) -> None:
    """Refuse a file about other languages; add the target language where it is missing."""
    new = root.get("srcLang") is not None or root.get("version", "").startswith("2")
    places = [root] if new else [one for one in root if isinstance(one.tag, str) and one.tag.endswith("file")]
    wanted = {"srcLang": source, "trgLang": target}
    if not new:
        wanted = {"source-language": source, "target-language": target}
    for place in places:
        for key, code in wanted.items():
            given = place.get(key)
            if given is not None and code and base(given) != base(code):
                raise DataError(
                    f"expected {key} {code!r} as the model has it, got {given!r}; "
                    "give a file of the model's languages",
                    path=name,
                    line=place.sourceline,
                )
        key = list(wanted)[1]
        if place.get(key) is None and target:
            place.set(key, target)


def _translated(unit: Unit) -> bool:
    """Whether a target is more than a copy of its source that is marked as one to be translated."""
    state = unit.target.get("state") or unit.parent.get("state") or ""
    text, source = ("".join(one.itertext()).strip() for one in (unit.target, unit.source))
    return bool(text) and not (text == source and state in ("new", "needs-translation", "initial"))


def _untranslated(element: Any) -> bool:
    """Whether the unit or a group around it says translate="no"."""
    while element is not None:
        if element.get("translate") is not None:
            return bool(element.get("translate") == "no")
        element = element.getparent()
    return False


def _target(unit: Unit, language: str) -> Any:
    """The target of a unit, with the content of its source."""
    new = copy.deepcopy(unit.source)
    new.tag = unit.source.tag.replace("source", "target")
    new.tail = unit.source.tail
    for key in list(new.attrib):
        del new.attrib[key]
    if unit.source.get(LANGUAGE) is not None and language:
        new.set(LANGUAGE, language)
    if unit.source.get(_SPACE) is not None:
        new.set(_SPACE, unit.source.get(_SPACE))
    if unit.target is not None:
        new.tail = unit.target.tail
        unit.parent.replace(unit.target, new)
    else:
        after = [one for one in unit.parent if isinstance(one.tag, str) and one.tag.endswith("source")][-1]
        tail, after.tail = after.tail, unit.parent.text
        after.addnext(new)
        new.tail = tail
    if unit.parent.tag.endswith("segment"):
        unit.parent.set("state", "translated")
    else:
        new.set("state", "needs-review-translation")
    return new


def _xliff_role(element: Any) -> Role:
    tag = element.tag.rpartition("}")[2]
    if element.get("mtype") == "protected" or element.get("translate") == "no":
        return "point"
    return "inline" if tag in ("g", "mrk", "pc") else "point"


class Tmx:
    """A memory; units without the target language are segments, the others stay as they are."""

    def __init__(self, data: bytes, name: str, source: str, target: str) -> None:
        self._data, self._root = data, parsed(data, name)
        found = list(variants(self._root, name, source, target))
        if all(one.source is None for one in found):
            raise DataError(
                f"expected texts in {source!r}, got none; give a memory of this language", path=name
            )
        waiting = [one for one in found if one.source is not None and one.target is None]
        self._texts = MarkupTexts([_added(one, target) for one in waiting], _tmx_role)
        self.segments = self._texts.segments

    def written(self, found: Sequence[WrittenSentence]) -> bytes:
        """The memory with the new translations."""
        self._texts.fill(found)
        return rewritten(self._root, self._data)


def variants(root: Any, name: str, source: str, target: str) -> Iterator[Variants]:
    """The units of a memory."""
    if root.tag != "tmx":
        raise DataError(
            f"expected an element tmx, got {root.tag.rpartition('}')[2]}", path=name, line=root.sourceline
        )
    for unit in root.iter("tu"):
        yield variant(unit, name, source, target)


def _added(one: Variants, target: str) -> Any:
    """The text of a new variant, with the content of the source's."""
    variant = one.source.getparent().makeelement("tuv", {LANGUAGE: target})
    new = copy.deepcopy(one.source)
    variant.append(new)
    variant.tail = one.unit[-1].tail
    one.unit[-1].tail = one.unit.text
    one.unit.append(variant)
    return new


def _tmx_role(element: Any) -> Role:
    return "inline" if element.tag == "hi" else "point"
