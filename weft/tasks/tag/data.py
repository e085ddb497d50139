"""A recipe's section `data` for tagging: which files, which column, which batches.

Read next: ../../data/conllu.py, which reads them; ../shared/lexicon.py, which turns words into numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.data.conllu import Column, Sentence, grouped, read_sentences
from weft.errors import ConfigError, DataError
from weft.tasks.shared.labels.grouped import by_group
from weft.tasks.shared.labels.splits import check_parts, parts
from weft.tasks.task import Split


@dataclass(frozen=True, kw_only=True)
class TagData:
    """Where tagged sentences are: CoNLL-U, or word TAB tag lines with an empty line after each sentence.

    Args:
        train, valid, test: files, also compressed.
        folder: where they are; the current one by default.
        column: of CoNLL-U, to be learnt: upos, xpos or feats.
        hold_out: 20 keeps a twentieth of the training sentences out for validation, instead of `valid`.
        split_seed: shuffles before hold_out splits. null, as in older recipes, takes every k-th sentence.
        group: comment of CoNLL-U whose sentences stay in one part: newdoc or newpar, which begin a document
            or a paragraph, or one with a value for each sentence, such as speaker; for hold_out, with
            split_seed. null shuffles single sentences.
        lowercase: look words up in lower case; their letters keep their case.
        min_count: words that are rarer in the training data are unknown.
        max_length: longer sentences are left out of training, counted and reported.
        batch_tokens: words per batch, padding not counted.
        batch_rows: maximum number of sentences per batch; 0 for no limit.
    """

    train: str
    valid: str | None = None
    test: str | None = None
    folder: Path = Path()
    column: Column = "upos"
    hold_out: int = 0
    split_seed: int | None = None
    group: str | None = None
    lowercase: bool = True
    min_count: int = 1
    max_length: int = 150
    batch_tokens: int = 800
    batch_rows: int = 0

    def __post_init__(self) -> None:
        for name, least in (("min_count", 1), ("max_length", 1), ("batch_tokens", 1), ("batch_rows", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        check_parts(
            folds=0,
            fold=0,
            hold_out=self.hold_out,
            seed=self.split_seed,
            valid=self.valid is not None,
            test=False,
        )
        if self.group is not None and self.split_seed is None:
            raise ConfigError("group: needs hold_out and split_seed; set both, or leave it out")

    def has(self, split: Split) -> bool:
        """Whether there is such a split."""
        return getattr(self, split) is not None or (split == "valid" and self.hold_out > 0)

    def file(self, split: Split) -> Path:
        """The file that contains a split.

        Raises:
            ConfigError: there is no such split.
        """
        name = self.train if split == "valid" and self.hold_out else getattr(self, split)
        if name is None:
            other = ", or score the validation part: --split valid" if split == "test" else ""
            raise ConfigError(
                f"data.{split}: the recipe names no such file; give one with --data FILE{other}"
            )
        return self.folder / str(name)

    def sentences(self, split: Split) -> Iterator[Sentence]:
        """The sentences of a split, each with its tags.

        Raises:
            ConfigError: there is no such split.
            DataError: a file is missing, damaged, or has no tags.
        """
        if split == "test" or not self.hold_out:
            yield from self.at(self.file(split))
            return
        path, cut = self.file(split), {"folds": 0, "fold": 0, "hold_out": self.hold_out}
        whole, seed = list(self.at(path)), self.split_seed
        if self.group is None or seed is None:
            split_of = parts([""] * len(whole), **cut, seed=seed)
        else:
            read = read_sentences(path, column=self.column)
            groups = [group for group, _ in grouped(read, self.group, str(path))]
            split_of = by_group([""] * len(groups), groups, **cut, seed=seed)
        yield from (sentence for sentence, part in zip(whole, split_of, strict=True) if part == split)

    def at(self, path: Path) -> Iterator[Sentence]:
        """The sentences of another file that have words, each with its tags."""
        empty = True
        for sentence in read_sentences(path, column=self.column):
            if not sentence.forms:
                continue
            if sentence.tags is None:
                raise DataError(
                    "expected word TAB tag, got words without tags", path=path, line=sentence.first
                )
            empty = False
            yield sentence
        if empty:
            raise DataError("expected at least one sentence, got none", path=path)

    def describe(self, split: Split) -> str:
        """For signatures, such as "dev.conllu upos"."""
        part = ""
        if split == "valid" and self.hold_out:
            part = f" (every {self.hold_out}th sentence)"
            if self.split_seed is not None:
                by = f", {self.group} kept together" if self.group else ""
                part = f" (1 in {self.hold_out} sentences{by}, split seed {self.split_seed})"
        return f"{self.file(split).name}{part} {self.column}"
