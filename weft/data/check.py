"""Check data files and report all problems at once, with their places.

Training stops at the first unreadable line, but accepts readable lines that are bad: pairs that are not
translations, or that occur in both training and test data. This check finds both and continues where
training would stop. Read next: sides.py, which files belong together.
"""

import re
import unicodedata
from array import array
from collections import Counter
from hashlib import blake2b
from math import exp, log
from pathlib import Path
from statistics import median

from weft.data.drift import first_skip
from weft.data.lines import raw_lines, wrong_bytes
from weft.data.report import COMMON, MOST, Finding, Report, other_form
from weft.data.sides import AlignedText, SideLines, texts
from weft.data.swapped import SwappedPairs
from weft.errors import ConfigError

OUT_OF_PROPORTION = 4.0
"""Maximum factor between a pair's length ratio and the text's median."""

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

_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LONG = 30  # characters of the longer side; the ratio of shorter pairs varies by chance


def check_pairs(
    *paths: str | Path, pairs: bool = True, source: str | None = None, target: str | None = None
) -> Report:
    """Check all files together; memory use is about 300 bytes per pair.

    Args:
        paths: files with language extensions, prefixes of such files, tables, or memories. Files that
            differ only in the language are sides of one text, and so are two consecutive files with other
            names. Each text is compared with those before it; texts with "train" in their name come first.
        pairs: whether files may be sides of one text; otherwise each file is checked by itself.
        source, target: the columns of a table; None to guess.

    Raises:
        ConfigError: only one of the columns is named.
    """
    if (source is None) != (target is None):
        raise ConfigError("--source and --target: expected both columns of a table, got one; name the other")
    checker = _Checker()
    columns = (source, target) if source is not None and target is not None else None
    for text in texts(paths, pairs=pairs, columns=columns):
        if isinstance(text, Finding):
            checker.add(text)
        else:
            checker.at(text)
    return Report(
        checker.findings,
        dict(checker.counts),
        checker.lines,
        PAIRS if pairs else LINES,
        "pairs" if checker.paired else "lines",
        checker.shared_sources,
        tuple(checker.notes),
    )


class _Checker:
    """The findings and the pairs seen so far."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.lines: dict[str, int] = {}
        self.shared_sources = 0
        self._pairs: dict[bytes, tuple[int, int]] = {}  # text and line of each pair's first occurrence
        self._sources: dict[bytes, int] = {}  # text of each source's first occurrence
        self._places: list[AlignedText] = []
        self._sides: dict[tuple[str, str], SwappedPairs] = {}
        self._forms: dict[str, list[tuple[int, str]]] = {}  # of each file, lines that are not in NFC
        self.notes: list[str] = []
        self.paired = False

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= MOST:
            self.findings.append(finding)

    def at(self, text: AlignedText) -> None:
        self._places.append(text)
        self.lines[text.name] = 0
        self.paired = self.paired or len(text.sides) > 1
        self.notes += text.notes
        unequal = self.counts["count"]
        ratios = [(array("q"), array("d")) for _ in text.sides]
        for row in text.rows():
            if isinstance(row, Finding):
                self.add(row)
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
                self.add(finding)
        if self.counts["count"] > unequal:
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
        wrong = wrong_bytes(raw, file)
        found = _CONTROL.search(line)
        if not unicodedata.is_normalized("NFC", line):
            self._forms.setdefault(file, []).append((number, line))
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
        self, text: AlignedText, side: int, number: int, source: str, target: str, ratios: tuple[array, array]
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
            self.add(Finding(text.files[0], number, kind, f"{what}: {_short(pair[0])}"))

    def _ratios(self, text: AlignedText, side: int, numbers: array, values: array) -> None:
        usual = exp(median(values)) if values else 1.0
        for number, value in zip(numbers, values, strict=True):
            if abs(value - log(usual)) > log(OUT_OF_PROPORTION):
                what = f"{text.sides[side]} is {exp(value):.2f} times as long as {text.sides[0]}"
                what = f"{what}, {usual:.2f} is usual; is it its translation?"
                self.add(Finding(text.files[side], number, "ratio", what))

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
            self.add(Finding(text.files[0], 0, "swapped", what))
        elif len(numbers) > judged / 2:
            what = f"most of {first} reads like {second} in {self._places[0].name}, and the other way round"
            self.add(Finding(text.files[0], 0, "swapped", f"{what}; are the two sides swapped?"))
        else:
            for number in numbers:
                what = f"{first} reads like {second} and {second} like {first}; swap the sides of the line"
                self.add(Finding(text.files[0], number, "swapped", what))

    def _drifted(self, text: AlignedText) -> None:
        """Add to the finding about unequal lengths where the sides seem to stop matching."""
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
