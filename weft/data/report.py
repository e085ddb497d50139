"""What `weft data check` found in the files of a task: how much, how bad, and where.

Every task names its kinds of findings in its own words. Read next: check.py, the findings of parallel text.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from weft.data.sides import Finding

MOST = 1_000
"""Findings of one kind that are kept; all are counted."""

COMMON = {
    "file": "files that cannot be read to the end",
    "columns": "lines with the wrong number of columns",
    "bytes": "lines that are not UTF-8 text",
    "damaged": "lines with U+FFFD, left by a failed conversion",
    "control": "lines with a control character or a line separator inside",
}
"""Kinds that every task may find."""

ERRORS = ("file", "count", "columns", "bytes", "unlabelled", "single", "recording", "unspoken")
"""Kinds that a training refuses; the others are warnings: it takes them, and is the worse for them."""


class Report(NamedTuple):
    """What was found."""

    findings: list[Finding]
    counts: dict[str, int]
    """Findings by kind, those not kept too."""

    lines: dict[str, int]
    """Items of each text."""

    words: Mapping[str, str] = COMMON
    """What each kind of finding is called in this task."""

    item: str = "lines"
    """What is counted."""

    shared_sources: int = 0
    """Lines whose source stands in an earlier text, whatever its translation: a score on them flatters."""

    notes: tuple[str, ...] = ()
    """How the files were read, where that was a guess."""

    @property
    def num_errors(self) -> int:
        """Findings that a training refuses."""
        return sum(self.counts.get(kind, 0) for kind in ERRORS)

    @property
    def summary(self) -> str:
        """How much there is and how much of it is wrong, a line each; then what it means."""
        told = [*self.notes, *(f"{name}: {count:,} {self.item}" for name, count in self.lines.items())]
        for kind, what in sorted(self.words.items(), key=lambda one: one[0] not in ERRORS):
            if self.counts.get(kind):
                level = "error" if kind in ERRORS else "warning"
                told.append(f"{level}: {what}: {self.counts[kind]:,}")
        if self.shared_sources:
            told.append(f"lines whose source stands in an earlier text too: {self.shared_sources:,}")
        return "\n".join([*told, self.verdict])

    @property
    def verdict(self) -> str:
        """What it means for a training, in a sentence."""
        if not self.counts:
            return "nothing wrong found; ready to train"
        if self.num_errors:
            return f"not ready: fix the errors first ({self.num_errors:,}), a training refuses these files"
        return "ready to train, with warnings: a training takes these files, but the findings cost quality"

    def ordered(self) -> list[Finding]:
        """Errors first, each group in the order of the files; of a file in another encoding one finding."""
        ordered = sorted(self.findings, key=lambda one: one.kind not in ERRORS)
        lines = Counter(one.file for one in ordered if one.kind == "bytes")
        first: set[str] = set()
        kept = []
        for one in ordered:  # of a file in another encoding one finding says what to do
            if one.kind == "bytes":
                if one.file in first:
                    continue
                first.add(one.file)
                more = lines[one.file] - 1
                one = one._replace(text=one.text + (f" ({more:,} more such lines)" if more else ""))
            kept.append(one)
        return kept
