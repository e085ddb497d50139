"""F1 of whole names, from one tag per word, counted as conlleval counts.

A name is right if its first word, its last word and its type are right; half a name counts nothing. Tags are
read as conlleval reads them, so IOB1, IOB2 and IOE need not be told apart, and a name that begins with I- is
one. The letters that it does not know end a name (E, L), or are one of a single word (S, U, W).
Read next: f1.py, a score for each tag.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from weft.metrics.f1 import ClassRow
from weft.metrics.metric import Metric

TAG = re.compile(r"([BIESLUMW])-(.+)", re.DOTALL)
SAME = {"L": "E", "M": "I", "U": "S", "W": "S"}
"""Letters of BILOU and BMEWO, and those of IOBES for them."""
ALL = "all names"


class Span(NamedTuple):
    """A name: words `first` to `last`, both included, counted from 0."""

    first: int
    last: int
    kind: str


def spans(tags: Sequence[str]) -> list[Span]:
    """The names in the tags of a sentence.

    A name ends before O, before another type, before B and S, and after E and S. A tag without one of the
    letters, such as NOUN, is a name of one word, as with conlleval's option -r.

    Source: Tjong Kim Sang & Buchholz 2000, "Introduction to the CoNLL-2000 shared task: chunking", the script
    conlleval.
    """
    found: list[Span] = []
    before, letter_before = "", "O"
    for place, tag in enumerate(tags):
        letter, kind = _read(tag)
        if letter == "O":
            before, letter_before = "", "O"
            continue
        goes_on = letter_before in "BI" and before == kind and letter in "IE"
        first = found.pop().first if goes_on else place
        found.append(Span(first, place, kind))
        before, letter_before = kind, letter
    return found


def are_spans(tags: Iterable[str]) -> bool:
    """Whether these tags mark names: all are O or have a letter, as in B-PER, and not all are O."""
    named = set(tags) - {"O"}
    return bool(named) and all(TAG.fullmatch(tag) for tag in named)


def scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme that tags follow: IOB2, IOB1, IOE, IOBES, BILOU or BMEWO."""
    held = [list(tags) for tags in sentences]
    letters = {match[1] for tag in chain(*held) if (match := TAG.fullmatch(tag))}
    if letters & set("LU"):
        return "BILOU"
    if letters & set("MW"):
        return "BMEWO"
    if "S" in letters or ("E" in letters and "B" in letters):
        return "IOBES"
    if "E" in letters:
        return "IOE"
    begun = all(tags[span.first].startswith("B-") for tags in held for span in spans(tags))
    return "IOB2" if begun else "IOB1"


def by_type(hypotheses: Iterable[Sequence[str]], references: Iterable[Sequence[str]]) -> list[ClassRow]:
    """Precision, recall and F1 of all names, then of each type by decreasing frequency in the references."""
    right, predicted, there = Counter[str](), Counter[str](), Counter[str]()
    for ours, theirs in zip(hypotheses, references, strict=True):
        guessed, known = set(spans(ours)), set(spans(theirs))
        for counts, names in ((right, guessed & known), (predicted, guessed), (there, known)):
            counts.update(name.kind for name in names)
    kinds = sorted(predicted.keys() | there.keys(), key=lambda kind: (-there[kind], kind))
    whole = ClassRow.of(ALL, right.total(), predicted.total(), there.total())
    return [whole, *(ClassRow.of(kind, right[kind], predicted[kind], there[kind]) for kind in kinds)]


def _read(tag: str) -> tuple[str, str]:
    """The letter of IOBES, and the type."""
    match = TAG.fullmatch(tag)
    if match is None:
        return ("O", "") if tag in ("", "O") else ("S", tag)
    return SAME.get(match[1], match[1]), match[2]


class SpanF1(Metric):
    """F1 = 2 r / (p + t) of whole names over all sentences, 0..1: r right, p predicted, t true ones.

    Lines are the tags of a sentence with spaces between them.

    Example:
        >>> SpanF1().score(["B-PER O B-LOC"], ["B-PER I-PER B-LOC"]).value
        0.5
    """

    name = "span F1"
    perfect = 1.0
    reads = ("tags",)

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: twice the right names, and predicted and true names together."""
        rows = []
        for ours, theirs in zip(hypotheses, references, strict=True):
            guessed, known = set(spans(ours.split())), set(spans(theirs.split()))
            rows.append((2 * len(guessed & known), len(guessed) + len(known)))
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def signature(self) -> str:
        return "unit:name|counted:conlleval"
