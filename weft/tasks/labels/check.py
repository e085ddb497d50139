"""Everything that is wrong with labelled texts, at once, each with its place.

Read next: ../../data/labelled.py, whose forms are checked.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from weft.data.check import Report
from weft.data.labelled import LabelledText
from weft.data.sides import Finding, placed
from weft.errors import DataError

FEW = 3  # texts of a class that is nearly empty
MOST = 1000  # findings of a kind that are kept


class _Found:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] = self.counts.get(finding.kind, 0) + 1
        if self.counts[finding.kind] <= MOST:
            self.findings.append(finding)


def check_labels(files: Sequence[Path]) -> Report:
    """Look at `__label__x text` lines, .tsv or .csv with columns label and text.

    Args:
        files: to look at; one named train is what the others are held against, else the first.
    """
    found, lines = _Found(), {}
    known: dict[str, int] = {}
    seen: dict[str, tuple[str, str]] = {}
    first = min(files, key=lambda path: "train" not in path.name)
    for path in sorted(files, key=lambda path: path != first):
        counts: Counter[str] = Counter()
        try:
            texts = LabelledText(path)
        except DataError as error:  # of the first line, without which no other can be read
            wrong = placed(str(path), error)
            found.add(wrong._replace(kind="columns") if wrong.line else wrong)
            continue
        rows = 0
        for one in texts.rows():
            rows += 1
            if isinstance(one, Finding):
                found.add(one)
                continue
            number, label, text, _ = one
            counts[label] += 1
            if path != first and known and label not in known:
                what = f"the label {label!r} never stands in {first}; no classifier can learn it"
                found.add(Finding(str(path), number, "label", what))
            if not text.strip():
                found.add(Finding(str(path), number, "nothing", "the text is empty; remove the line"))
                continue
            place = f"{path}:{number}"
            before, said = seen.setdefault(text.strip(), (place, label))
            if before != place:
                kind = "again" if before.startswith(f"{path}:") else "leak"
                other = f", there labelled {said!r}, here {label!r}" if said != label else ""
                found.add(
                    Finding(str(path), number, kind, f"the same text as {before}{other}: {text[:50]!r}")
                )
            if "\ufffd" in text:
                what = "U+FFFD, a character that an earlier conversion lost; mend or remove the line"
                found.add(Finding(str(path), number, "damaged", what))
        lines[str(path)] = rows
        if path == first:
            known = dict(counts)
            if len(counts) == 1:
                what = f"every text is {next(iter(counts))!r}; classification needs two classes or more"
                found.add(Finding(str(path), 0, "label", what))
        for label, count in counts.items():
            if path == first and count < FEW and len(counts) > 1:
                what = (
                    f"the class {label!r} has {count} text{'s' if count > 1 else ''}; give more, or drop it"
                )
                found.add(Finding(str(path), 0, "label", what))
        for label in sorted(set(known) - set(counts)):
            what = f"no text is {label!r}, as some of {first} are; that class is not scored here"
            found.add(Finding(str(path), 0, "label", what))
    found.findings.sort(key=lambda one: (one.file, one.line))
    return Report(found.findings, found.counts, lines, 0)
