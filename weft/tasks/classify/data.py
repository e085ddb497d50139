"""A recipe's section `data` for classification: texts, vocabulary and batches; and the checks of the texts.

Read next: ../../data/labelled.py, which reads them; ../labels/splits.py, folds.
"""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self
from unicodedata import normalize

from weft.data import corpora
from weft.data.guess import columns_of, texts_of
from weft.data.labelled import BORDER, OPTIONS, LabelledExample, LabelledText, check_encoding, text_columns
from weft.data.lines import read_lines
from weft.data.report import COMMON, Finding, FindingList, Report, placed
from weft.data.several import Files, called, each_file
from weft.data.tables import is_table, kind_of
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.setting_types import AtLeastOne, Whole, check_fields
from weft.tasks.init import VALID_NAMES, sibling
from weft.tasks.labels.splits import (
    FEW,
    HeldOut,
    can_hold_out,
    check_classes,
    check_parts,
    cut_texts,
    few,
    held_out,
    thinly_held_out,
    thinly_scored,
)
from weft.tasks.task import Split
from weft.tasks.vocabulary import WordSettings
from weft.wording import plural

SAID: dict[str, Split] = {
    "train": "train",
    "val": "valid",
    "valid": "valid",
    "dev": "valid",
    "validation": "valid",
    "test": "test",
}


def names_of(label: str, separator: str | None) -> list[str]:
    """The labels in a cell, sorted, each once."""
    if separator is None:
        return [label]
    return sorted({name.strip() for name in label.split(separator)} - {""})


class LabelledTexts(NamedTuple):
    """Texts and their classes."""

    texts: list[str]
    labels: list[str]
    lines: list[int]  # of the texts in their file
    finer: list[str]  # their subclasses, empty where unknown

    @classmethod
    def of(cls, labelled: Sequence[LabelledExample], finer: str | None = None) -> "LabelledTexts":
        """The columns of these rows, and that of their subclasses."""
        texts, labels = [one.text for one in labelled], [one.label for one in labelled]
        subclasses = [one.cells.get(finer or "", "").strip() for one in labelled]
        return cls(texts, labels, [one.number for one in labelled], subclasses)

    def joined(self, other: "LabelledTexts") -> "LabelledTexts":
        """Both."""
        texts, labels, lines, finer = other
        return LabelledTexts(self.texts + texts, self.labels + labels, self.lines + lines, self.finer + finer)

    def at(self, numbers: Sequence[int]) -> "LabelledTexts":
        """Some of them."""
        texts, labels, finer = (
            [column[n] for n in numbers] for column in (self.texts, self.labels, self.finer)
        )
        return LabelledTexts(texts, labels, [self.lines[n] for n in numbers], finer)


@dataclass(frozen=True, kw_only=True)
class LabelData:
    """The source of labelled texts.

    Args:
        train, valid, test: files with `__label__x text` lines (or see labels), or tables such as .csv. train
            may be a list of them and of folders.
        folder: folder of these files; by default the current one.
        corpus: an embedded corpus instead of files; the class of a sentence is its language.
        text: the column of a table with the text, or a list of columns, with a border between them.
        label: its column with the class. In a table without a header, columns are numbered from "1".
        finer: column of a table with subclasses, such as "late" and "lost" of the class "order"; its cells
            may be empty. They are learnt, and a class has the probability of all its subclasses.
        separator: between the labels of a text that may have several or none, such as "|" for `sport|news`.
        labels: of lines: marked (`__label__x text`), first (the first word is the class, `0 text`) or coarse
            (that word up to its colon: NUM of `NUM:dist How far ...`).
        encoding: encoding of the files, such as latin-1.
        split_column: a column of the training file with train, valid (val, dev) or test.
        folds, fold: cross-validation inside the training file: folds: 10, fold: 3 tests on the fourth tenth.
        hold_out: 10 holds out a tenth of the remaining training texts for validation, instead of `valid`.
        split_seed: shuffle before folds and hold_out split, every class in proportion. null, as in older
            recipes, takes every k-th text in the order of the file.
        group: column of a table whose equal values stay in one part, such as a customer; for folds and
            hold_out, which then hold about a k-th of the texts.
        time: column of a table with dates (ISO 8601) or numbers. hold_out takes the newest texts, and folds
            cut time into equal parts: fold 3 tests on the fourth and trains on the three before it.
        vocabulary: see WordSettings.
        max_length: maximum number of tokens of a text; the rest is cut off. null is no limit for a bag and
            400 for other models.
        batch_tokens: tokens per batch, without padding.
        batch_rows: maximum number of texts per batch; 0 for no limit.
    """

    train: Files | None = None
    valid: str | None = None
    test: str | None = None
    folder: Path = Path()
    corpus: str | None = None
    text: str | list[str] = "text"
    label: str = "label"
    finer: str | None = None
    separator: str | None = None
    labels: Literal["marked", "first", "coarse"] = "marked"
    encoding: str = "utf-8"
    split_column: str | None = None
    folds: int = 0
    fold: int = 0
    hold_out: int = 0
    split_seed: int | None = None
    group: str | None = None
    time: str | None = None
    vocabulary: WordSettings = field(default_factory=WordSettings)
    max_length: AtLeastOne | None = None
    batch_tokens: AtLeastOne = 2000
    batch_rows: Whole = 50
    border: ClassVar[str] = BORDER

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.corpus is None) == (self.train is None):
            raise ConfigError("set exactly one of corpus (embedded) and train (your file)")
        if self.split_column is not None and (self.folds or self.valid or self.test):
            raise ConfigError("split_column: cannot be combined with valid, test or folds; leave them out")
        check_encoding(self.encoding)
        if self.separator == "" or self.separator in ("\t", "\n"):
            raise ConfigError(f'separator: expected a character such as "|", got {self.separator!r}')
        if self.finer is not None and (self.corpus is not None or self.separator is not None):
            raise ConfigError("finer: cannot be combined with corpus or separator; leave one of them out")
        if not self.text:
            raise ConfigError("text: expected at least one column, got none; name one")
        if self.finer in (*text_columns(self.text), self.label):
            raise ConfigError(f"finer: expected a column of subclasses, got {self.finer!r}; name another")
        inside = self.corpus is not None or self.split_column is not None
        valid, test = self.valid is not None or (inside and not self.hold_out), self.test is not None
        check_parts(self._held_out, valid=valid, test=test)

    @property
    def _held_out(self) -> HeldOut:
        return HeldOut(self.folds, self.fold, self.hold_out, self.split_seed, self.group, self.time)

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        if self.corpus is not None or self.split_column is not None or split == "train":
            return True
        if split == "valid":
            return True
        return self.folds > 0 or self.test is not None

    def parts(self, split: Split) -> tuple[object, object]:
        """The settings that determine a split; with other ones, a run may have trained on its texts."""
        by = self.split_seed, self.group, self.time
        held = (self.hold_out, *by) if split == "valid" and self.valid is None else None
        return (self.folds, self.fold, *by) if self.folds else None, held

    def check_classes(self, split: Split, labels: Sequence[str]) -> None:
        """Check that a split has more than one class."""
        cut = bool(self.hold_out or self.folds) and getattr(self, split) in (None, self.train)
        check_classes(labels, self.describe(split), cut=cut, seed=self.split_seed)

    def find(self, split: Split) -> None:
        """Check that the file of a split exists."""
        if self.corpus is not None:
            corpora.languages(self.corpus)
            return
        named = {"split_column": self.split_column, "finer": self.finer if split == "train" else None}
        for found, (key, name) in product(map(self.read, self._files(split)), named.items()):
            first = next(iter(found), None) if name is not None else None
            if first is not None and name not in first.cells:
                has = f"the columns are {', '.join(first.cells)}" if first.cells else "it is not a table"
                raise DataError(f"no such column {name!r} (data.{key}); {has}", path=found.path, line=1)

    def notes(self) -> list[str]:
        """How the training table is read, where a user may have expected something else."""
        tables = [] if self.corpus is not None else [self.read(file).table for file in self._files("train")]
        return [note for table in tables if table is not None for note in table.notes]

    def texts(self, split: Split) -> Iterator[LabelledExample]:
        """The texts of a split."""
        empty = True
        for one in self._texts(split):
            empty = False
            yield one
        if empty:
            where = self.corpus or self._file(split)
            remedy = (
                "; give more texts, or a file as data.valid" if split == "valid" and not self.valid else ""
            )
            raise DataError(f"{where}: expected at least one text for {split}, got none{remedy}")

    def _texts(self, split: Split) -> Iterator[LabelledExample]:
        if self.corpus is not None:
            yield from _languages(self.corpus, split)
            return
        own = getattr(self, split) if split != "train" else None
        if own is not None:
            yield from self.at(self.folder / own)
            return
        if split == "test" and not self.folds and self.split_column is None:
            self._file(split)  # raises
        marked = list(self._marked())
        whole = [one for one, said in marked if said == "train"]
        cut = iter(cut_texts(whole, self._file("train"), self._held_out))
        yield from (one for one, said in marked if (next(cut) if said == "train" else said) == split)

    def _marked(self) -> Iterator[tuple[LabelledExample, Split]]:
        """The texts of the training file with their split from `split_column`, or train."""
        for file, one in ((path, one) for path in self._files("train") for one in self.at(path)):
            word = "train" if self.split_column is None else one.cells.get(self.split_column, "")
            said = SAID.get(word.strip().lower())
            if said is None:
                raise DataError(
                    f"expected one of {', '.join(SAID)} in column "
                    f"{self.split_column}, got {word[:40]!r}; correct the cell",
                    path=file,
                    line=one.number,
                )
            yield one, said

    def at(self, path: Path) -> Iterator[LabelledExample]:
        """The texts of another file."""
        for one in self.read(path):
            names = names_of(one.label, self.separator)
            yield one._replace(label=names[0] if self.separator is None else self.separator.join(names))

    def read(self, path: Path, *, label: str | None = None, unlabelled: bool = False) -> LabelledText:
        """A file in the recipe's format; `label` names another column, `unlabelled` one with empty cells."""
        return LabelledText(
            path,
            text=self.text,
            label=label or self.label,
            labels=self.labels,
            encoding=self.encoding,
            unlabelled=unlabelled or self.separator is not None,
            border=self.border,
            separator=self.separator,
        )

    def bordered(self, border: str) -> Self:
        """The same with the border between columns that a run was trained with."""
        other = copy.copy(self)
        object.__setattr__(other, "border", border)
        return other

    def describe(self, split: Split) -> str:
        """For signatures, such as "train.tsv fold 3 of 10"."""
        if self.corpus:
            return f"{self.corpus} {split}, the language of a sentence"
        files = self._files(split)
        name = called([str(file) for file in files])
        if split == "test" and self.folds:
            return f"{name} {self._held_out.said()}"
        inside = split == "valid" and self.valid is None
        return f"{name} {split}" if self.split_column or inside else name

    def _file(self, split: Split) -> Path:
        """The file of a split, the first of several."""
        return self._files(split)[0]

    def _files(self, split: Split) -> list[Path]:
        inside = self.split_column is not None or split == "train"
        inside = inside or (split == "valid" and self.valid is None) or (split == "test" and self.folds > 0)
        name = self.train if inside else getattr(self, split)
        if name is None:
            raise MissingSplitError.of(split, "texts", "FILE")
        return each_file(name, self.folder)


def _languages(name: str, split: Split) -> Iterator[LabelledExample]:
    """Each sentence of a corpus in one of its languages, in turn; missing ones are left out."""
    languages = corpora.languages(name)
    path = corpora.FOLDER / name / f"{split}.tsv.xz"
    for number, line in enumerate(read_lines(path), 1):
        if number == 1:
            continue
        place = number % len(languages)
        text = line.split("\t")[1 + place]
        if text.strip():
            yield LabelledExample(number, languages[place], text, {})


def check_subclasses(labels: Sequence[str], finer: Sequence[str], column: str, part: str) -> None:
    """Check that a column of subclasses, some of them empty, divides a class."""
    pairs = {pair for pair in zip(labels, finer, strict=True) if pair[1]}
    if len(pairs) == len({label for label, _ in pairs}):
        raise DataError(
            f"{part}: column {column!r} (data.finer): expected a class with at least two subclasses, "
            "got none; name another column or leave data.finer out"
        )


MORE = "add texts, or test on every part in turn: weft folds"
"""What to do about a class of which few texts are held out."""

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


def check_labels(files: Sequence[Path], *, separator: str | None = None, **form: Any) -> Report:
    """Check `__label__x text` lines, or .tsv and .csv tables with a column of labels and one of texts."""
    found, lines, notes = FindingList(), {}, list[str]()
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
            number, label, read, *_ = one
            names = names_of(label, separator)
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
            before, other_label = seen.setdefault(read.strip(), (place, label))
            if before != place:
                kind = "again" if before.startswith(f"{path}:") else "leak"
                other = f", there labelled {other_label!r}, here {label!r}" if other_label != label else ""
                found.add(
                    Finding(str(path), number, kind, f"the same text as {before}{other}: {read[:50]!r}")
                )
            if "\ufffd" in read:
                what = "U+FFFD, the mark of a character lost in a conversion; correct or remove the line"
                found.add(Finding(str(path), number, "damaged", what))
        lines[str(path)] = rows
        if path == first:
            known = dict(counts)
            _training(found, path, counts, separator, most, alone=len(files) == 1)
        elif thin := thinly_scored(known, counts, "add texts"):
            found.add(Finding(str(path), 0, "label", thin))
    found.kept.sort(key=lambda one: (one.file, one.line))
    return Report(found.kept, found.counts, lines, WORDS, "texts", notes=tuple(notes))


def _training(
    found: FindingList, path: Path, counts: Counter[str], separator: str | None, most: int, *, alone: bool
) -> None:
    """Too few classes or labels of the training file, whose texts have `most` labels at most.

    A file that is `alone` gives the validation texts too.
    """
    labels = list(counts.elements())
    cut = alone and separator is None and len(counts) > 1 and not sibling(path, VALID_NAMES)
    if cut and not can_hold_out(labels, held_out(len(labels))):
        found.add(Finding(str(path), 0, "single", few(len(labels), "texts")))
    elif cut and (thin := thinly_held_out(counts, held_out(len(labels)), MORE)):
        found.add(Finding(str(path), 0, "label", thin))
    if separator is not None and most == 1:
        what = f"no text has several labels; if some should, {separator!r} is not their separator"
        found.add(Finding(str(path), 0, "separator", what))
    if len(counts) == 1 and separator is None:
        what = f"expected two classes or more, got only {next(iter(counts))!r}"
        found.add(Finding(str(path), 0, "single", what))
    alike: dict[str, str] = {}
    for label, count in counts.most_common():
        other = alike.setdefault(" ".join(normalize("NFKC", label).casefold().split()).strip(".,;: "), label)
        if other != label:
            what = f"the classes {other!r} ({counts[other]:,}) and {label!r} ({count:,}) may be one"
            what += "; call it by one name"
            found.add(Finding(str(path), 0, "alike", what))
    for label, count in counts.items() if len(counts) > 1 else ():
        if count < FEW:
            what = f"the class {label!r} has {plural(count, 'text')}; add more, or remove it"
            found.add(Finding(str(path), 0, "label", what))


class NamedColumns(NamedTuple):
    """The columns with the texts and the labels."""

    text: str | list[str]
    label: str
    note: str = ""  # a sentence to print where they are a guess


def columns(
    path: Path, text: Sequence[str] | None, label: str | None, encoding: str = "utf-8"
) -> NamedColumns:
    """The columns with the texts and the labels."""
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
    note = f"{path}: {read_as(guess.texts, guess.label)}; --text and --label name others"
    return NamedColumns(_one(guess.texts), guess.label, note)


def read_as(texts: Sequence[str], label: str) -> str:
    """What the columns of a table are read as."""
    shown = " and ".join(map(repr, texts))
    read = f"columns {shown} are" if len(texts) > 1 else f"column {shown} is"
    return f"{read} read as the text{', joined,' if len(texts) > 1 else ''} and {label!r} as its class"


def _one(texts: Sequence[str]) -> str | list[str]:
    """One column, or the list of several."""
    return texts[0] if len(texts) == 1 else list(texts)
