"""Everything that is wrong with labelled texts, each finding with its place.

Read next: ../../data/labelled.py, whose formats are checked.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from weft.data.guess import columns_of, texts_of
from weft.data.labelled import OPTIONS, LabelledText, text_columns
from weft.data.report import COMMON, Finding, Report, placed
from weft.data.tables import is_table, kind_of
from weft.errors import DataError
from weft.tasks.classify.data import names_of
from weft.wording import plural

FEW = 3  # texts of a class that is nearly empty
MOST = 1000  # findings of a kind that are kept

WORDS = COMMON | {
    "unlabelled": "texts without exactly one label",
    "single": "files with one class only",
    "label": "classes that are rare, or missing in one file",
    "alike": "classes that differ only in letter case, spaces or punctuation at the end",
    "separator": "files in which no text has several labels",
    "nothing": "empty texts",
    "again": "duplicate texts in one file",
    "leak": "texts that also occur in an earlier file",
}


class _Found:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] = self.counts.get(finding.kind, 0) + 1
        if self.counts[finding.kind] <= MOST:
            self.findings.append(finding)


def check_labels(files: Sequence[Path], *, separator: str | None = None, **form: Any) -> Report:
    """Check `__label__x text` lines, or .tsv and .csv tables with a column of labels and one of texts.

    Args:
        files: to check; the others are compared with the one named train, or else with the first one.
        separator: between the labels of a text that may have several or none.
        form: arguments of LabelledText, such as the names of the columns.
    """
    found, lines, notes = _Found(), {}, list[str]()
    known: dict[str, int] = {}
    seen: dict[str, tuple[str, str]] = {}
    first = min(files, key=lambda path: "train" not in path.name)
    for path in sorted(files, key=lambda path: path != first):
        counts: Counter[str] = Counter()
        try:
            texts = LabelledText(
                path, named=OPTIONS, unlabelled=separator is not None, separator=separator, **form
            )
        except DataError as error:  # in the first line, and no other line can be read without it
            wrong = placed(str(path), error)
            found.add(wrong._replace(kind="columns") if wrong.line else wrong)
            continue
        notes += texts.table.notes if texts.table else []
        rows = most = 0
        for one in texts.rows():
            rows += 1
            if isinstance(one, Finding):
                found.add(one)
                continue
            number, said, read, *_ = one
            names = names_of(said, separator)
            counts.update(names)
            most = max(most, len(names))
            for name in names if path != first and known else ():
                if name not in known:
                    what = f"the label {name!r} does not occur in {first}, so no classifier can learn it"
                    found.add(Finding(str(path), number, "label", what))
            if not read.strip():
                found.add(Finding(str(path), number, "nothing", "the text is empty; remove the line"))
                continue
            place = f"{path}:{number}"
            before, other_said = seen.setdefault(read.strip(), (place, said))
            if before != place:
                kind = "again" if before.startswith(f"{path}:") else "leak"
                other = f", there labelled {other_said!r}, here {said!r}" if other_said != said else ""
                found.add(
                    Finding(str(path), number, kind, f"the same text as {before}{other}: {read[:50]!r}")
                )
            if "\ufffd" in read:
                what = "U+FFFD, the mark of a character lost in a conversion; correct or remove the line"
                found.add(Finding(str(path), number, "damaged", what))
        lines[str(path)] = rows
        if path == first:
            known = dict(counts)
            _training(found, path, counts, separator, most)
        for said in sorted(set(known) - set(counts)):
            what = f"no text has the class {said!r}, which {first} has; it is not scored here"
            found.add(Finding(str(path), 0, "label", what))
    found.findings.sort(key=lambda one: (one.file, one.line))
    return Report(found.findings, found.counts, lines, WORDS, "texts", notes=tuple(notes))


def _training(found: _Found, path: Path, counts: Counter[str], separator: str | None, most: int) -> None:
    """Too few classes or labels of the training file, whose texts have `most` labels at most."""
    if separator is not None and most == 1:
        what = f"no text has several labels; if some should, {separator!r} is not their separator"
        found.add(Finding(str(path), 0, "separator", what))
    if len(counts) == 1 and separator is None:
        what = f"expected two classes or more, got only {next(iter(counts))!r}"
        found.add(Finding(str(path), 0, "single", what))
    alike: dict[str, str] = {}
    for said, count in counts.most_common():
        other = alike.setdefault(" ".join(normalize("NFKC", said).casefold().split()).strip(".,;: "), said)
        if other != said:
            what = f"the classes {other!r} ({counts[other]:,}) and {said!r} ({count:,}) may be one"
            what += "; call it by one name"
            found.add(Finding(str(path), 0, "alike", what))
    for said, count in counts.items() if len(counts) > 1 else ():
        if count < FEW:
            what = f"the class {said!r} has {plural(count, 'text')}; add more, or remove it"
            found.add(Finding(str(path), 0, "label", what))


class NamedColumns(NamedTuple):
    """The columns with the texts and the labels."""

    text: str | list[str]
    label: str
    note: str = ""  # a sentence to print where they are a guess


def columns(
    path: Path, text: Sequence[str] | None, label: str | None, encoding: str = "utf-8"
) -> NamedColumns:
    """The columns with the texts and the labels.

    Args:
        path: of the table, or of lines.
        text, label: the names that the user gives; None to guess.
        encoding: of the file.

    Raises:
        DataError: it cannot be read.
        ConfigError: a library is not installed.
    """
    named = NamedColumns(_one(text or ["text"]), label or "label")
    if (text and label) or not is_table(path):
        return named
    found = columns_of(path, encoding)
    names = {one.name for one in found}
    given = {*(text or ()), *([label] if label else ())}
    if given - names or {*text_columns(named.text), named.label} <= names:
        return named
    guess = texts_of(found, text, label)
    if guess is None:
        return named
    if kind_of(path) == ".tsv" and len(found) == 2 and guess == (["2"], "1"):
        return named._replace(
            note=f"{path}: no header, so the first column is read as the class of the second"
        )
    shown = " and ".join(map(repr, guess.texts))
    read = (
        f"columns {shown} are read as the text, joined,"
        if len(guess.texts) > 1
        else f"column {shown} is read as the text"
    )
    note = f"{path}: {read} and {guess.label!r} as its class; --text and --label name others"
    return NamedColumns(_one(guess.texts), guess.label, note)


def _one(texts: Sequence[str]) -> str | list[str]:
    """One column, or the list of several."""
    return texts[0] if len(texts) == 1 else list(texts)
