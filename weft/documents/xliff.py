"""XLIFF 1.2 and 2: units without a translation as segments. Read next: markup.py."""

import copy
from collections.abc import Sequence
from typing import Any

from weft.data.pairs import Unit, units
from weft.data.xml import parsed, rewritten
from weft.documents.markup import MarkupTexts, Role
from weft.errors import DataError
from weft.text.numbers import wrong_parts
from weft.text.segments import WrittenSentence
from weft.words import base

_XML = "{http://www.w3.org/XML/1998/namespace}"


class Xliff:
    """A file of translation units; those without a translation are segments.

    `lost` gets the place of each new target with other placeholders or numbers than its source.
    """

    def __init__(self, data: bytes, name: str, source: str, target: str, lost: list[str]) -> None:
        self._data, self._name, self._lost = data, name, lost
        self._root = parsed(data, name)
        _check(self._root, name, source, target)
        self._waiting: list[Unit] = []
        for unit in units(self._root, name):
            if not _full(unit.source) or (unit.target is not None and _translated(unit)):
                continue
            if _untranslated(unit.parent):
                continue
            self._waiting.append(unit._replace(target=_target(unit, target)))
        self._texts = MarkupTexts([unit.target for unit in self._waiting], _role)
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


def _check(root: Any, name: str, source: str, target: str) -> None:
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


def _full(element: Any) -> bool:
    return bool("".join(element.itertext()).strip())


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
    if unit.source.get(f"{_XML}lang") is not None and language:
        new.set(f"{_XML}lang", language)
    if unit.source.get(f"{_XML}space") is not None:
        new.set(f"{_XML}space", unit.source.get(f"{_XML}space"))
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


def _role(element: Any) -> Role:
    tag = element.tag.rpartition("}")[2]
    if element.get("mtype") == "protected" or element.get("translate") == "no":
        return "point"
    return "inline" if tag in ("g", "mrk", "pc") else "point"
