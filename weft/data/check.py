"""Check data files and report all problems at once, with their places.

Training stops at the first unreadable line, but accepts readable lines that are bad: pairs that are not
translations, or that occur in both training and test data. This check finds both and continues where
training would stop. Read next: sides.py, which files belong together.
"""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import exp, log
from pathlib import Path
from statistics import median

import numpy as np

from weft.data.languages import code_of, share
from weft.data.lines import line_findings, raw_lines
from weft.data.report import COMMON, Finding, FindingList, Report, other_form
from weft.data.sides import AlignedText, SideLines, texts
from weft.errors import ConfigError
from weft.words import units

LEARNT = 5_000  # number of pairs used to count words

SURE = 4.0  # evidence in nats for the other side's language that each side must show

FEW = 30  # fewer words than this are too few to tell a side's language


class SwappedPairs:
    """Word statistics of two sides, and the pairs that seem swapped.

    A naive Bayes model learns each side's words from the first pairs, and each pair is judged without its own
    words. Word lists of languages are needed only to detect that a whole text is swapped.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        self._counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._pending: list[tuple[int, set[str], set[str]]] = []
        self._learnt = False
        self._sizes = [1.0, 1.0]
        self._found: list[int] = []
        self._judged = 0

    def see(self, number: int, source: str, target: str) -> None:
        """Add one pair by its line number."""
        pair = set(units(source.lower())), set(units(target.lower()))
        if self._learnt:
            self._judge(number, *pair, own=0)
            return
        self._pending.append((number, *pair))
        for counts, words in zip(self._counts, pair, strict=True):
            counts.update(words)
        if len(self._pending) >= LEARNT:
            self._settle()

    def end(self) -> tuple[list[int], int]:
        """End a text: the lines that seem swapped, and the number of pairs judged."""
        if not self._learnt:
            self._settle()
        found, judged = self._found, self._judged
        self._found, self._judged = [], 0
        return found, judged

    def names_swapped(self) -> bool:
        """Whether the sides of the first text are in each other's language, judging by their names."""
        codes = code_of(self.source), code_of(self.target)
        if codes[0] is None or codes[1] is None or codes[0] == codes[1]:
            return False
        if min(counts.total() for counts in self._counts) < FEW:
            return False
        first, second = self._counts
        named = share(first, codes[0]) + share(second, codes[1])
        other = share(first, codes[1]) + share(second, codes[0])
        return other > 0.2 and other > 2 * named

    def _settle(self) -> None:
        self._learnt = True
        self._sizes = [counts.total() + len(counts) / 2 + 1 for counts in self._counts]
        for number, source, target in self._pending:
            self._judge(number, source, target, own=1)
        self._pending.clear()

    def _judge(self, number: int, source: set[str], target: set[str], *, own: int) -> None:
        self._judged += 1
        left, right = source - target, target - source  # shared words are no evidence
        if sum(self._evidence(left, own, 0)) > SURE and sum(self._evidence(right, 0, own)) < -SURE:
            self._found.append(number)

    def _evidence(self, words: set[str], first: int, second: int) -> Iterator[float]:
        """Each word's evidence for the target side in nats; `first`, `second` are the pair's own counts."""
        for word in words:
            left, right = self._counts[0][word] - first, self._counts[1][word] - second
            if left or right:
                yield log((right + 0.5) / self._sizes[1]) - log((left + 0.5) / self._sizes[0])


OUT_OF_PROPORTION = 4.0  # maximum factor between a pair's length ratio and the text's median

LINES = COMMON | {
    "again": "duplicate lines in one file",
    "leak": "lines that also occur in an earlier file",
}
"""Descriptions of findings for texts with one side."""

PAIRS = LINES | {
    "count": "texts whose sides have different numbers of lines",
    "swapped": "pairs whose sides seem swapped",
    "empty": "pairs with an empty side",
    "same": "pairs with source equal to target",
    "ratio": "pairs with an unusual length ratio",
    "duplicate": "duplicate pairs in one text",
    "overlap": "pairs that also occur in an earlier text",
}
"""Descriptions of findings for pairs."""

_LONG = 30  # characters of the longer side; the ratio of shorter pairs varies by chance


def check_pairs(
    *paths: str | Path, pairs: bool = True, source: str | None = None, target: str | None = None
) -> Report:
    """Check all files together; memory use is about 300 bytes per pair.

    Paths are files with language extensions, prefixes of such files, tables, or memories. Files that differ
    only in the language are sides of one text, and so are two consecutive files with other names. Each text
    is compared with those before it; texts with "train" in their name come first.
    """
    if (source is None) != (target is None):
        raise ConfigError("--source and --target: expected both columns of a table, got one; name the other")
    checker = _Checker()
    columns = (source, target) if source is not None and target is not None else None
    for text in texts(paths, pairs=pairs, columns=columns):
        if isinstance(text, Finding):
            checker.found.add(text)
        else:
            checker.at(text)
    return Report(
        checker.found.kept,
        checker.found.counts,
        checker.lines,
        PAIRS if pairs else LINES,
        "pairs" if checker.paired else "lines",
        checker.shared_sources,
        tuple(checker.notes),
    )


class _Checker:
    """The findings and the pairs seen so far."""

    def __init__(self) -> None:
        self.found = FindingList()
        self.lines: dict[str, int] = {}
        self.shared_sources = 0
        self._pairs: dict[bytes, tuple[int, int]] = {}  # text and line of each pair's first occurrence
        self._sources: dict[bytes, int] = {}  # text of each source's first occurrence
        self._places: list[AlignedText] = []
        self._sides: dict[tuple[str, str], SwappedPairs] = {}
        self._forms: dict[str, list[tuple[int, str]]] = {}  # of each file, lines that are not in NFC
        self.notes: list[str] = []
        self.paired = False

    def at(self, text: AlignedText) -> None:
        self._places.append(text)
        self.lines[text.name] = 0
        self.paired = self.paired or len(text.sides) > 1
        self.notes += text.notes
        unequal = self.found.counts["count"]
        ratios = [(array("q"), array("d")) for _ in text.sides]
        for row in text.rows():
            if isinstance(row, Finding):
                self.found.add(row)
                continue
            counted = text.units or text.columns
            self.lines[text.name] = self.lines[text.name] + 1 if counted else row.number
            self._row(text, row, ratios)
        for side, (numbers, values) in enumerate(ratios):
            self._ratios(text, side, numbers, values)
            if side:
                self._swapped(text, side)
        for file in text.files:
            for finding in other_form(file, self._forms.pop(file, [])):
                self.found.add(finding)
        if self.found.counts["count"] > unequal:
            self._drifted(text)

    def _row(self, text: AlignedText, row: SideLines, ratios: list[tuple[array, array]]) -> None:
        source, *targets = [self._side(text, side, row.number, raw) for side, raw in enumerate(row.sides)]
        here = len(self._places) - 1
        for side, target in enumerate(targets, 1):
            self._pair(text, side, row.number, source, target, ratios[side])
        if not targets and source:
            self._repeated(text, 0, row.number, source)
        if source and self._sources.setdefault(_digest(source), here) != here:
            self.shared_sources += 1

    def _side(self, text: AlignedText, side: int, number: int, raw: bytes) -> str:
        """Decode a line, and add findings about the line itself."""
        file = text.files[side]
        line = raw.decode("utf-8", errors="replace")
        if not unicodedata.is_normalized("NFC", line):
            self._forms.setdefault(file, []).append((number, line))
        for finding in line_findings(raw, file, number, "remove it, or split the line there on every side"):
            self.found.add(finding)
        return line.strip()

    def _pair(
        self, text: AlignedText, side: int, number: int, source: str, target: str, ratios: tuple[array, array]
    ) -> None:
        first, second = text.sides[0], text.sides[side]
        if not source or not target:
            which = f"{second if source else first} is" if source or target else f"{first} and {second} are"
            file = text.files[side if source else 0]
            self.found.add(Finding(file, number, "empty", f"{which} empty; training leaves the pair out"))
            return
        if source == target and any(map(str.isalpha, source)):
            what = f"{second} equals {first}: {_short(source)}"
            self.found.add(Finding(text.files[side], number, "same", f"{what}; is it translated?"))
        elif max(len(source), len(target)) >= _LONG:
            ratios[0].append(number)
            ratios[1].append(log(len(target) / len(source)))
        self._languages(text, side).see(number, source, target)
        self._repeated(text, side, number, source, target)

    def _repeated(self, text: AlignedText, side: int, number: int, *pair: str) -> None:
        here = len(self._places) - 1, number
        first = self._pairs.setdefault(_digest("\t".join([text.sides[side], *pair])), here)
        if first != here:
            kind = "duplicate" if first[0] == here[0] else "overlap"
            if len(pair) == 1:
                kind = "again" if first[0] == here[0] else "leak"
            place = f"{self._places[first[0]].files[0]}:{first[1]}"
            what = f"the same pair as {place}" if len(pair) > 1 else f"the same line as {place}"
            self.found.add(Finding(text.files[0], number, kind, f"{what}: {_short(pair[0])}"))

    def _ratios(self, text: AlignedText, side: int, numbers: array, values: array) -> None:
        usual = exp(median(values)) if values else 1.0
        for number, value in zip(numbers, values, strict=True):
            if abs(value - log(usual)) > log(OUT_OF_PROPORTION):
                what = f"{text.sides[side]} is {exp(value):.2f} times as long as {text.sides[0]}"
                what = f"{what}, {usual:.2f} is usual; is it its translation?"
                self.found.add(Finding(text.files[side], number, "ratio", what))

    def _languages(self, text: AlignedText, side: int) -> SwappedPairs:
        """The language statistics of two sides."""
        key = text.sides[0], text.sides[side]
        return self._sides.setdefault(key, SwappedPairs(*key))

    def _swapped(self, text: AlignedText, side: int) -> None:
        """Add a finding for each swapped pair, or a single one if most are swapped."""
        languages = self._languages(text, side)
        new = len(self._places) == 1
        numbers, judged = languages.end()
        first, second = text.sides[0], text.sides[side]
        if new and languages.names_swapped():
            what = f"{first} reads like {second} and {second} like {first}; are the two sides swapped?"
            self.found.add(Finding(text.files[0], 0, "swapped", what))
        elif len(numbers) > judged / 2:
            what = f"most of {first} reads like {second} in {self._places[0].name}, and the other way round"
            self.found.add(Finding(text.files[0], 0, "swapped", f"{what}; are the two sides swapped?"))
        else:
            for number in numbers:
                what = f"{first} reads like {second} and {second} like {first}; swap the sides of the line"
                self.found.add(Finding(text.files[0], number, "swapped", what))

    def _drifted(self, text: AlignedText) -> None:
        """Add to the finding about unequal lengths where the sides seem to stop matching."""
        sides = [_decoded(file) for file in (text.files[0], text.files[-1])]
        place = first_skip(*sides)
        if place is None:
            return
        kept = self.found.kept
        at = [(one.kind, one.file) for one in kept].index(("count", text.files[0]))
        last = min(map(len, sides))
        more = f"; they seem to match up to line {last:,}, so the rest may be too much"
        if place <= last:
            more = f"; they seem to stop matching near line {place:,}: look there first"
        kept[at] = kept[at]._replace(text=kept[at].text + more)


def _decoded(file: str) -> list[str]:
    return [line.decode("utf-8", errors="replace") for line in raw_lines(file) if isinstance(line, bytes)]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8"), digest_size=12).digest()


def _short(text: str) -> str:
    return repr(text if len(text) <= 50 else f"{text[:47]}...")


MOST_LINES = 50_000
WIDEST = 200  # maximum difference of the line counts

SKIP = 8.0  # cost of skipping a line, in nats

_VARIANCE = 6.8  # of a translation's length, per character (Gale & Church)
_NUMBERS = re.compile(r"\d+")
_ENDS = ".?!:;…"


def first_skip(first: Sequence[str], second: Sequence[str]) -> int | None:
    """The first line, counted from 1, where two files no longer match; None if no place is clear.

    Lines are compared by length, numbers and final punctuation; the cheapest alignment, which skips as few
    lines as possible, shows the first skipped line.

    Source: Gale & Church 1993, "A Program for Aligning Sentences in Bilingual Corpora", for the lengths.
    """
    difference = abs(len(first) - len(second))
    if not 0 < difference <= WIDEST or not first or not second or max(map(len, (first, second))) > MOST_LINES:
        return None
    wide = difference + 8
    marks = _Marks(first, second)
    offsets = np.arange(-wide, wide + 1)  # offset = j - i for line j of the second file
    best = np.where(offsets >= 0, SKIP * offsets, np.inf)
    moves = np.zeros(
        (len(first) + 1, len(offsets)), dtype=np.int8
    )  # 0: matched, 1: skip in the first file, 2: skip in the second
    moves[0, offsets > 0] = 2
    for i in range(1, len(first) + 1):
        matched = best + marks.costs(i - 1, i - 1 + offsets)
        skipped = np.append(best[1:], np.inf) + SKIP
        moves[i] = skipped < matched
        reached = np.minimum(matched, skipped)
        reached[(offsets + i < 0) | (offsets + i > len(second))] = np.inf
        ladder = SKIP * np.arange(len(offsets))
        best = np.minimum.accumulate(reached - ladder) + ladder
        moves[i, best < reached - 1e-9] = 2
    return _first(moves, len(first), len(second), wide)


def _first(moves: np.ndarray, first: int, second: int, wide: int) -> int | None:
    """Trace the cheapest alignment back to its first skip."""
    i, j, found = first, second, None
    while i > 0 or j > 0:
        step = moves[i, j - i + wide]
        if step == 0:
            i, j = i - 1, j - 1
        else:
            i, j = (i - 1, j) if step == 1 else (i, j - 1)
            found = min(i, j) + 1
    return found


class _Marks:
    """The features by which lines are compared."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self.lengths = [np.array([len(line) + 1.0 for line in side]) for side in (first, second)]
        kinds: dict[object, int] = {}
        self.numbers = [
            np.array([kinds.setdefault(tuple(_NUMBERS.findall(line)), len(kinds)) for line in side])
            for side in (first, second)
        ]
        self._none = kinds.get((), -1)
        self.ends = [
            np.array([_ENDS.find(line.rstrip()[-1:] or "x") for line in side]) for side in (first, second)
        ]
        self.usual = self.lengths[1].sum() / self.lengths[0].sum() * len(first) / len(second)
        logs = [np.log(side) for side in self.lengths]
        self.spread = max(
            0.1, float(np.var(logs[0]) + np.var(logs[1]))
        )  # variance of the log ratio of unrelated lines

    def costs(self, i: int, j: np.ndarray) -> np.ndarray:
        """Costs of matching line i with lines j: negative log-likelihood ratios of pair against unrelated."""
        real = (j >= 0) & (j < len(self.lengths[1]))
        at = np.clip(j, 0, len(self.lengths[1]) - 1)
        first, second = self.lengths[0][i], self.lengths[1][at]
        ratio = np.log(second / first / self.usual)
        variance = np.minimum(_VARIANCE / ((first + second) / 2), self.spread)
        cost = (ratio**2) * (1 / variance - 1 / self.spread) / 2 + np.log(variance / self.spread) / 2
        cost = np.minimum(cost, 4.0)  # do not skip because of one free translation
        equal = self.numbers[0][i] == self.numbers[1][at]
        some = (self.numbers[0][i] != self._none) | (self.numbers[1][at] != self._none)
        cost = cost + np.where(some, np.where(equal, -3.0, 2.0), 0.0)
        cost = cost + np.where(self.ends[0][i] == self.ends[1][at], -0.2, 0.8)
        return np.where(real, cost, np.inf)
