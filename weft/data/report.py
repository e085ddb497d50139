"""The report of `weft data check`: findings in the files of a task, with counts and places.

Each task describes its kinds of findings in its own terms. Read next: check.py, which checks parallel text.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from weft.errors import DataError
from weft.wording import plural

MOST = 1_000  # findings kept of each kind; all are counted

SHOWN = 50  # findings printed by default

COMMON = {
    "file": "files that cannot be read completely",
    "columns": "lines with the wrong number of columns",
    "bytes": "lines that are not UTF-8 text",
    "damaged": "lines with U+FFFD, left by a failed conversion",
    "cut": "lines that a program has cut into words or pieces",
    "control": "lines with a control character or a line separator inside",
    "form": "files with lines that are not in Unicode form NFC",
}
"""Kinds of findings common to all tasks."""

ERRORS = ("file", "count", "columns", "bytes", "unlabelled", "single", "recording", "unspoken")
"""Kinds that stop training; the others are warnings, which reduce quality."""


class Finding(NamedTuple):
    """A problem at some place."""

    file: str
    line: int  # from 1; 0 for the whole file
    kind: str
    text: str

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> DataError:
        """The finding as an error."""
        return DataError(self.text, path=self.file, line=self.line or None)


def placed(file: str, error: DataError, kind: str = "file") -> Finding:
    """An error as a finding in this file; an error of another file keeps that file's name in its text."""
    if error.path != file:
        return Finding(file, 0, kind, str(error))
    return Finding(file, error.line or 0, kind, error.why)


def other_form(file: str, texts: Iterable[tuple[int, str]]) -> list[Finding]:
    """A finding if texts of a file are in another Unicode form; their lines, or 0 for none."""
    lines = [number for number, text in texts if not unicodedata.is_normalized("NFC", text)]
    if not lines:
        return []
    more = f" and {plural(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
    what = f"not in Unicode form NFC{more}, such as e and U+0301 for é; models read and write NFC"
    return [Finding(file, lines[0], "form", f"{what}, so references count as wrong: convert the file")]


class SeenContent:
    """Where pictures or recordings were seen first, to find those that come again under another name."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[str, str]] = {}

    def again(self, content: bytes, place: str, source: str) -> tuple[str, str] | None:
        """The kind of finding, "overlap" if it was in another source, and the first place; None if new."""
        key = blake2b(content, digest_size=16).digest()
        first, origin = self._first.setdefault(key, (place, source))
        if (first, origin) == (place, source):
            return None
        return "duplicate" if origin == source else "overlap", first


class FindingList:
    """Findings in the order in which they are made: all are counted, and MOST of each kind are kept."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= MOST:
            self.kept.append(finding)


class Report(NamedTuple):
    """The findings in some files."""

    findings: list[Finding]
    counts: dict[str, int]  # number of findings of each kind, including those not kept
    lines: dict[str, int]  # number of items in each text
    words: Mapping[str, str] = COMMON  # description of each kind of finding in this task
    item: str = "lines"  # name of the counted items
    shared_sources: int = 0  # lines whose source is in an earlier text too; their scores are too high
    notes: tuple[str, ...] = ()  # how the files were interpreted, where that was a guess
    each: int = MOST  # findings of each kind in a short listing

    def with_too_few(self, least: int = 1) -> "Report":
        """The report with an error for each text that has no item, or fewer than `least` if it is alone."""
        least = least if len(self.lines) == 1 else 1
        known = {one.file for one in self.findings if one.kind in ERRORS}
        few = {name: count for name, count in self.lines.items() if count < least and name not in known}
        if not few:
            return self
        what = "expected {} {} or more, got {}; give more" + ", or files for validation" * (least > 1)
        found = [Finding(name, 0, "file", what.format(least, self.item, n)) for name, n in few.items()]
        counts = {**self.counts, "file": self.counts.get("file", 0) + len(found)}
        return self._replace(findings=[*self.findings, *found], counts=counts)

    def told(self, say: Callable[[str], str]) -> "Report":
        """The report with other words for its places and sentences."""
        found = [
            Finding(say(f"{one.file}:{one.line}" if one.line else one.file), 0, one.kind, say(one.text))
            for one in self.findings
        ]
        lines = {say(name): count for name, count in self.lines.items()}
        return self._replace(findings=found, lines=lines, notes=tuple(map(say, self.notes)))

    @property
    def num_errors(self) -> int:
        """Number of findings that stop training."""
        return sum(self.counts.get(kind, 0) for kind in ERRORS)

    @property
    def summary(self) -> str:
        """Counts of items and findings, one per line, and the verdict."""
        lines = [*self.notes, *(f"{name}: {count:,} {self.item}" for name, count in self.lines.items())]
        for kind, what in sorted(self.words.items(), key=lambda one: one[0] not in ERRORS):
            if self.counts.get(kind):
                level = "error" if kind in ERRORS else "warning"
                lines.append(f"{level}: {what}: {self.counts[kind]:,}")
        if self.shared_sources:
            lines.append(f"lines whose source also occurs in an earlier text: {self.shared_sources:,}")
        return "\n".join([*lines, self.verdict])

    @property
    def verdict(self) -> str:
        """Whether the files are ready for training."""
        if not self.counts:
            return "no problems found; ready to train"
        if self.num_errors:
            return f"not ready: fix the errors first ({self.num_errors:,}); training would fail on them"
        return "ready to train, with warnings: the findings may reduce quality"

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, [self.summary, self.listing()]))

    def listing(self, most: int | None = SHOWN, how: str = "findings has all") -> str:
        """The first findings, a line each; None for all."""
        found = self.ordered()
        shown: Counter[str] = Counter()
        few = []
        for one in found:
            shown[one.kind] += 1
            few += [one] if shown[one.kind] <= self.each else []
        lines = [str(one) for one in (found if most is None else few[:most])]
        if len(found) > len(lines):
            lines.append(f"... and {len(found) - len(lines):,} more ({how})")
        return "\n".join(lines)

    def ordered(self) -> list[Finding]:
        """Errors first, in the order of the files; one finding per file in another encoding."""
        ordered = sorted(self.findings, key=lambda one: one.kind not in ERRORS)
        lines = Counter(one.file for one in ordered if one.kind == "bytes")
        first: set[str] = set()
        kept = []
        for one in ordered:  # the first finding of a file in another encoding says what to do
            if one.kind == "bytes":
                if one.file in first:
                    continue
                first.add(one.file)
                more = lines[one.file] - 1
                one = one._replace(text=one.text + (f" ({plural(more, 'more such line')})" if more else ""))
            kept.append(one)
        return kept
