"""Everything that is wrong with data files, at once, each with its place.

Training stops at the first line that cannot be read, and takes what can be read but is not good: pairs
that are no translations, or that stand in training and test. This looks at all of it, and reads on where
training would stop. Read next: sides.py, which files belong together.
"""

import re
from array import array
from collections import Counter
from hashlib import blake2b
from math import exp, log
from pathlib import Path
from statistics import median

from weft.data.drift import first_skip
from weft.data.lines import wrong_bytes
from weft.data.report import COMMON, MOST, Report
from weft.data.sides import Finding, Row, Text, raw_lines, texts
from weft.data.swapped import Swapped

OUT_OF_PROPORTION = 4.0
"""Times longer or shorter than is usual in the same text."""

LINES = COMMON | {
    "again": "lines that stand twice in one file",
    "leak": "lines that stand in an earlier file too",
}
"""What findings are called where a text has one side."""

PAIRS = LINES | {
    "count": "texts whose sides have unequal numbers of lines",
    "swapped": "pairs whose sides seem to be swapped",
    "empty": "pairs with an empty side",
    "same": "pairs with source equal to target",
    "ratio": "pairs out of proportion",
    "duplicate": "pairs that stand twice in one text",
    "overlap": "pairs that stand in an earlier text too",
}
"""The same of pairs."""

_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LONG = 30  # characters of the longer side; shorter ones differ by chance


def check(*paths: str | Path, pairs: bool = True) -> Report:
    """Look at all files together; memory grows with the number of pairs, about 300 bytes each.

    Args:
        paths: files with language endings, prefixes of such files, or .tsv files. Files that differ only
            in the language are sides of one text, and so are two files of any names given one after the
            other. Texts are compared with those before them, and those named train come first.
        pairs: whether files may be sides of one text; else each is looked at by itself.
    """
    look = _Look()
    for text in texts(paths, pairs=pairs):
        if isinstance(text, Finding):
            look.add(text)
        else:
            look.at(text)
    return Report(
        look.findings,
        dict(look.counts),
        look.lines,
        PAIRS if pairs else LINES,
        "pairs" if look.paired else "lines",
        look.shared_sources,
        tuple(look.notes),
    )


class _Look:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.lines: dict[str, int] = {}
        self.shared_sources = 0
        self._pairs: dict[bytes, tuple[int, int]] = {}  # of a pair: text and line where it stood first
        self._sources: dict[bytes, int] = {}  # of a source: the text where it stood first
        self._places: list[Text] = []
        self._sides: dict[tuple[str, str], Swapped] = {}
        self.notes: list[str] = []
        self.paired = False

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= MOST:
            self.findings.append(finding)

    def at(self, text: Text) -> None:
        """Everything about one text."""
        self._places.append(text)
        self.lines[text.name] = 0
        self.paired = self.paired or len(text.sides) > 1
        if text.guessed:
            self.notes.append(f"{text.files[0]} and {text.files[1]} are read as a pair, line by line")
        unequal = self.counts["count"]
        ratios = [(array("q"), array("d")) for _ in text.sides]
        for row in text.rows():
            if isinstance(row, Finding):
                self.add(row)
                continue
            self.lines[text.name] = row.number - text.header
            self._row(text, row, ratios)
        for side, (numbers, values) in enumerate(ratios):
            self._ratios(text, side, numbers, values)
            if side:
                self._swapped(text, side)
        if self.counts["count"] > unequal:
            self._drifted(text)

    def _row(self, text: Text, row: Row, ratios: list[tuple[array, array]]) -> None:
        source, *targets = [self._side(text, side, row.number, raw) for side, raw in enumerate(row.sides)]
        here = len(self._places) - 1
        for side, target in enumerate(targets, 1):
            self._pair(text, side, row.number, source, target, ratios[side])
        if not targets and source:
            self._repeated(text, 0, row.number, source)
        if source and self._sources.setdefault(_digest(source), here) != here:
            self.shared_sources += 1

    def _side(self, text: Text, side: int, number: int, raw: bytes) -> str:
        """A line as text, and what is wrong with it by itself."""
        file = text.files[side]
        line = raw.decode("utf-8", errors="replace")
        wrong = wrong_bytes(raw, file)
        found = _CONTROL.search(line)
        if wrong:
            self.add(Finding(file, number, "bytes", wrong))
        elif "\ufffd" in line:
            what = "U+FFFD, a character that an earlier conversion lost"
            self.add(Finding(file, number, "damaged", f"{what}; correct or remove the line"))
        if found:
            what = f"U+{ord(found.group()):04X} inside the line"
            self.add(
                Finding(file, number, "control", f"{what}; remove it, or split the line there on every side")
            )
        return line.strip()

    def _pair(
        self, text: Text, side: int, number: int, source: str, target: str, ratios: tuple[array, array]
    ) -> None:
        first, second = text.sides[0], text.sides[side]
        if not source or not target:
            which = f"{second if source else first} is" if source or target else f"{first} and {second} are"
            file = text.files[side if source else 0]
            self.add(Finding(file, number, "empty", f"{which} empty; training leaves the pair out"))
            return
        if source == target and any(map(str.isalpha, source)):
            what = f"{second} equals {first}: {_short(source)}"
            self.add(Finding(text.files[side], number, "same", f"{what}; is it translated?"))
        elif max(len(source), len(target)) >= _LONG:
            ratios[0].append(number)
            ratios[1].append(log(len(target) / len(source)))
        self._look(text, side).see(number, source, target)
        self._repeated(text, side, number, source, target)

    def _repeated(self, text: Text, side: int, number: int, *pair: str) -> None:
        here = len(self._places) - 1, number
        first = self._pairs.setdefault(_digest("\t".join([text.sides[side], *pair])), here)
        if first != here:
            kind = "duplicate" if first[0] == here[0] else "overlap"
            if len(pair) == 1:
                kind = "again" if first[0] == here[0] else "leak"
            place = f"{self._places[first[0]].files[0]}:{first[1]}"
            what = f"the same pair as {place}" if len(pair) > 1 else f"the same line as {place}"
            self.add(Finding(text.files[0], number, kind, f"{what}: {_short(pair[0])}"))

    def _ratios(self, text: Text, side: int, numbers: array, values: array) -> None:
        usual = exp(median(values)) if values else 1.0
        for number, value in zip(numbers, values, strict=True):
            if abs(value - log(usual)) > log(OUT_OF_PROPORTION):
                what = f"{text.sides[side]} is {exp(value):.2f} times as long as {text.sides[0]}"
                what = f"{what}, {usual:.2f} is usual; is it its translation?"
                self.add(Finding(text.files[side], number, "ratio", what))

    def _look(self, text: Text, side: int) -> Swapped:
        """What is known of the languages of two sides."""
        key = text.sides[0], text.sides[side]
        return self._sides.setdefault(key, Swapped(*key))

    def _swapped(self, text: Text, side: int) -> None:
        """Pairs that are the wrong way round, or one finding where most are."""
        look = self._look(text, side)
        new = len(self._places) == 1
        numbers, judged = look.end()
        first, second = text.sides[0], text.sides[side]
        if new and look.names_swapped():
            what = f"{first} reads like {second} and {second} like {first}; are the two sides swapped?"
            self.add(Finding(text.files[0], 0, "swapped", what))
        elif len(numbers) > judged / 2:
            what = f"most of {first} reads like {second} in {self._places[0].name}, and the other way round"
            self.add(Finding(text.files[0], 0, "swapped", f"{what}; are the two sides swapped?"))
        else:
            for number in numbers:
                what = f"{first} reads like {second} and {second} like {first}; swap the sides of the line"
                self.add(Finding(text.files[0], number, "swapped", what))

    def _drifted(self, text: Text) -> None:
        """Say where the sides of unequal length stop matching, as far as that can be seen."""
        sides = [_decoded(file) for file in (text.files[0], text.files[-1])]
        place = first_skip(*sides)
        if place is None:
            return
        at = [(one.kind, one.file) for one in self.findings].index(("count", text.files[0]))
        last = min(map(len, sides))
        more = f"; they seem to match up to line {last:,}, so the rest may be too much"
        if place <= last:
            more = f"; they seem to stop matching near line {place:,}: look there first"
        self.findings[at] = self.findings[at]._replace(text=self.findings[at].text + more)


def _decoded(file: str) -> list[str]:
    return [line.decode("utf-8", errors="replace") for line in raw_lines(file) if isinstance(line, bytes)]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8"), digest_size=12).digest()


def _short(text: str) -> str:
    return repr(text if len(text) <= 50 else f"{text[:47]}...")
