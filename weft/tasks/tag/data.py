"""A recipe's section `data` for tagging: files, column and batches; and what is wrong with tagged text.

Read next: ../../data/conllu.py, which reads them; ../vocabulary.py, which turns words into numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.data.conll import form_of, words_among
from weft.data.conllu import (
    COLUMNS,
    WIDTH,
    Column,
    ConlluSentence,
    each_sentence,
    faults,
    grouped,
    read_sentences,
)
from weft.data.lines import read_lines
from weft.data.report import COMMON, Finding, FindingList, Report, placed
from weft.data.several import Files, called, each_file
from weft.data.spans import Block, holds_spans, tagged_records
from weft.errors import DataError, MissingSplitError
from weft.setting_types import AtLeastOne, Whole, check_fields
from weft.tasks.labels.splits import HeldOut, check_enough, check_parts, cut
from weft.tasks.task import Split


@dataclass(frozen=True, kw_only=True)
class TagData:
    """Where tagged sentences are: CoNLL-U, columns as in CoNLL-2003, word TAB tag lines, or word/TAG.

    Args:
        train, valid, test: files, also compressed. train may be a list of them and of folders.
        folder: where they are; the current one by default.
        column: to be learnt: upos, xpos or feats of CoNLL-U; pos, chunk or ner of CoNLL-2003 (in files with
            other columns, ner is the last).
        folds, fold: cross-validation inside the training file: folds: 10, fold: 3 tests on the fourth tenth.
        hold_out: 20 keeps a twentieth of the remaining training sentences out for validation, instead of
            `valid`.
        split_seed: shuffles before folds and hold_out split. null, as in older recipes, takes every k-th
            sentence.
        group: comment of CoNLL-U whose sentences stay in one part: newdoc or newpar, which begin a document
            or a paragraph, or one with a value for each sentence, such as speaker; for folds and hold_out.
            null splits single sentences.
        lowercase: look words up in lower case; their letters keep their case.
        min_count: words that are rarer in the training data are unknown.
        max_length: longer sentences are left out of training, counted and reported.
        batch_tokens: words per batch, padding not counted.
        batch_rows: maximum number of sentences per batch; 0 for no limit.
    """

    train: Files
    valid: str | None = None
    test: str | None = None
    folder: Path = Path()
    column: Column = "upos"
    folds: int = 0
    fold: int = 0
    hold_out: int = 0
    split_seed: int | None = None
    group: str | None = None
    lowercase: bool = True
    min_count: AtLeastOne = 1
    max_length: AtLeastOne = 150
    batch_tokens: AtLeastOne = 800
    batch_rows: Whole = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_parts(self._held_out, valid=self.valid is not None, test=self.test is not None)

    @property
    def _held_out(self) -> HeldOut:
        return HeldOut(self.folds, self.fold, self.hold_out, self.split_seed, self.group)

    def has(self, split: Split) -> bool:
        """Whether there is such a split."""
        return getattr(self, split) is not None or self._inside(split)

    def file(self, split: Split) -> Path:
        """The file that contains a split, the first of several."""
        return self.files(split)[0]

    def files(self, split: Split) -> list[Path]:
        """The files that contain a split."""
        name = self.train if self._inside(split) else getattr(self, split)
        if name is None:
            raise MissingSplitError.of(split, "sentences", "FILE")
        return each_file(name, self.folder)

    def find(self, split: Split) -> None:
        """Check that the file of a split can be read, by its first sentence."""
        for file in self.files(split):
            next(read_sentences(file, column=self.column), None)

    def sentences(self, split: Split) -> Iterator[ConlluSentence]:
        """The sentences of a split, each with its tags."""
        path, files = self.file(split), self.files(split)
        read = (one for file in files for one in self.at(file))
        if not self._inside(split):
            yield from read
            return
        whole, groups = list(read), None
        check_enough(len(whole), "sentences", self.folds, path)
        if self.group is not None:
            groups = [
                group
                for file in files
                for group, _ in grouped(read_sentences(file, column=self.column), self.group, str(file))
            ]
        split_of = cut([""] * len(whole), path, groups, self._held_out)
        found = [sentence for sentence, part in zip(whole, split_of, strict=True) if part == split]
        if not found:
            why = f"expected enough sentences to hold some out, got {len(whole)}"
            raise DataError(f"{why}; give more, or a file as data.valid", path=path)
        yield from found

    def _inside(self, split: Split) -> bool:
        """Whether a split is cut out of the training file."""
        held = {"train": self.folds + self.hold_out, "valid": self.hold_out, "test": self.folds}
        return held[split] > 0

    def at(self, path: Path) -> Iterator[ConlluSentence]:
        """The sentences of another file that have words, each with its tags."""
        empty = True
        for sentence in read_sentences(path, column=self.column):
            if not sentence.forms:
                continue
            if sentence.tags is None:
                raise DataError(UNTAGGED, path=path, line=sentence.first)
            empty = False
            yield sentence
        if empty:
            raise DataError("expected at least one sentence, got none", path=path)

    def describe(self, split: Split) -> str:
        """For signatures, such as "dev.conllu upos"."""
        part = ""
        if split == "test" and self.folds:
            part = f" {self._held_out.said()}"
        if split == "valid" and self.hold_out:
            part = f" (every {self.hold_out}th sentence)"
            if self.split_seed is not None or self.group:
                by = f", {self.group} kept together" if self.group else ""
                part = f" (1 in {self.hold_out} sentences{by}, split seed {self.split_seed or 1})"
        return f"{called([str(file) for file in self.files(split)])}{part} {self.column}"


UNTAGGED = (
    "expected word TAB tag on each line, got words without tags; write so, or as CoNLL-U or WORD/TAG, with "
    "an empty line after each sentence"
)
WORDS = COMMON | {
    "unlabelled": "lines without one word and one tag",
    "tag": "words without a tag",
    "label": "tags that the first file does not have",
    "nothing": "sentences without a word",
    "again": "duplicate sentences in one file",
    "leak": "sentences that also occur in an earlier file",
}


def check_tags(files: Sequence[Path]) -> Report:
    """Check tagged text: CoNLL-U, columns as in CoNLL-2003, word TAB tag, or word/TAG."""
    found = FindingList()
    counted: dict[str, int] = {}
    known: dict[str, set[str]] = {}  # tags of the first file, by column
    sentences: dict[str, str] = {}
    ordered = sorted(files, key=lambda path: "train" not in path.name)
    first_file = ordered[0]
    for place, path in enumerate(ordered):
        seen: dict[str, dict[str, int]] = {}
        count = 0
        wide = False
        try:
            form = form_of(path)
            for one in each_sentence(path, column="ner") if form else ():
                count += isinstance(one, ConlluSentence) and bool(one.forms)
                for finding in _findings_of_form(str(path), one, seen, sentences):
                    found.add(finding)
            for block in _blocks(path) if form is None else ():
                if isinstance(block, DataError):
                    found.add(placed(str(path), block, "columns"))
                    continue
                first, held = block
                count += 1
                wide = wide or any(len(line.split("\t")) > 2 for line in held)
                for finding in _findings(str(path), first, held, wide, seen, sentences):
                    found.add(finding)
        except DataError as error:
            found.add(placed(str(path), error, "bytes"))
        counted[str(path)] = count
        if place == 0:
            known = {column: set(tags) for column, tags in seen.items()}
            continue
        for column, tags in seen.items():
            for tag, line in tags.items():
                if known.get(column) and tag not in known[column]:
                    what = f"the {column} {tag!r} does not occur in {first_file}"
                    found.add(Finding(str(path), line, "label", f"{what}, so no tagger can learn it"))
    found.kept.sort(key=lambda one: (one.file, one.line))
    return Report(found.kept, found.counts, counted, WORDS, "sentences")


def _findings_of_form(
    name: str,
    sentence: ConlluSentence | DataError,
    seen: dict[str, dict[str, int]],
    sentences: dict[str, str],
) -> Iterator[Finding]:
    """The findings in a sentence of a form of conll.py."""
    if isinstance(sentence, DataError):
        yield placed(name, sentence, "columns")
        return
    form = sentence.form
    assert form is not None
    if sentence.tags is None:
        what = "the last column has no tag; tag the words, or leave the sentence out"
        yield Finding(name, sentence.first, "tag", what)
    for row, tag in zip(sentence.rows, sentence.tags or [], strict=sentence.tags is not None):
        number = sentence.first + (row if form.width else 0)
        if form.width <= 2:
            seen.setdefault("tag", {}).setdefault(tag, number)
        places = [(column, form.place(column)) for column in ("pos", "chunk", "ner") if form.width > 2]
        for column, place in places:
            if place is None:
                continue
            tag = form.cells(sentence.lines[row])[place]
            seen.setdefault(column, {}).setdefault(tag, number)
    yield from _repeated(name, sentence.first, sentence.forms, sentences)


def _repeated(name: str, first: int, words: Sequence[str], sentences: dict[str, str]) -> Iterator[Finding]:
    """A finding if a sentence of more than five words was seen before."""
    text = " ".join(words)
    if len(words) > 5:
        before = sentences.setdefault(text, f"{name}:{first}")
        if before != f"{name}:{first}":
            kind = "again" if before.startswith(f"{name}:") else "leak"
            yield Finding(name, first, kind, f"the same sentence as {before}: {text[:50]!r}")


def _blocks(path: Path) -> Iterator[Block | DataError]:
    if holds_spans(path):
        yield from tagged_records(path)
        return
    held: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            held.append(line)
        elif held:
            yield number - len(held), held
            held = []
    if held:
        yield number - len(held) + 1, held


def _findings(
    name: str,
    first: int,
    held: list[str],
    wide: bool,
    seen: dict[str, dict[str, int]],
    sentences: dict[str, str],
) -> Iterator[Finding]:
    places = range(len(held)) if wide else words_among(held, [line.count("\t") + 1 for line in held], 2)
    rows = [(first + place, held[place]) for place in places]
    words: list[str] = []
    if wide:
        for number, fault in faults(held, first):
            yield Finding(name, number, "columns", fault)
    for number, line in rows:
        cells = line.split("\t")
        if wide and (line.startswith("#") or len(cells) != WIDTH or not cells[0].isdigit()):
            continue
        if not wide and (len(cells) != 2 or not cells[0].strip() or not cells[1].strip()):
            found = f"{sum(bool(cell.strip()) for cell in cells)} of the two"
            yield Finding(name, number, "unlabelled", f"expected word TAB tag, got {found}; correct the line")
            continue
        words.append(cells[1] if wide else cells[0])
        columns = COLUMNS.items() if wide else [("tag", 1)]
        for column, place in columns:
            seen.setdefault(column, {}).setdefault(cells[place].strip(), number)
        if wide and cells[3] == "_":
            yield Finding(
                name, number, "tag", f"the word {cells[1]!r} has no upos; tag it, or leave the sentence out"
            )
        if "\ufffd" in line:
            yield Finding(name, number, "damaged", "U+FFFD, the mark of a character lost in a conversion")
    if wide and not words:
        yield Finding(name, first, "nothing", "a sentence without a word; remove it")
    yield from _repeated(name, first, words, sentences)
