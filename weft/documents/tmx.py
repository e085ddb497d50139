"""Translation memories (.tmx): units without the target language as segments. Read next: markup.py."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from weft.data.pairs import LANGUAGE, Variants, variant
from weft.data.xml import parsed, rewritten
from weft.documents.markup import MarkupTexts, Role
from weft.errors import DataError
from weft.text.segments import WrittenSentence


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
        self._texts = MarkupTexts([_added(one, target) for one in waiting], _role)
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


def _role(element: Any) -> Role:
    return "inline" if element.tag == "hi" else "point"
