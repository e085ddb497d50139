"""A recipe's section `data` for running text: which files, which vocabulary, how it is cut into batches.

Read next: ../../data/plain.py, which reads it; ../language/stream.py, the tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from weft.data.plain import PlainText, side
from weft.errors import ConfigError
from weft.tasks.task import Split
from weft.text.vocabulary import Vocabulary

Batching = Literal["stream", "windows", "lines"]


@dataclass(frozen=True, kw_only=True)
class ProseVocabulary:
    """How text becomes tokens; learnt on the training text alone.

    Args:
        kind: space (words between white space, for text that is tokenised already; <unk> in it is the
            unknown symbol), word (cut at punctuation too), character, or subwords (bpe, unigram).
        size: tokens, the four special ones counted; null takes every word or character there is.
        min_count: rarer words or characters become unknown.
        form: Unicode normal form.
        lowercase: all text is lowercased.
    """

    kind: Literal["space", "word", "character", "bpe", "unigram"] = "word"
    size: int | None = None
    min_count: int = 1
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False

    def learn(self, lines: Iterable[str]) -> Vocabulary:
        """The vocabulary of these lines."""
        return Vocabulary.train(
            lines,
            kind=self.kind,
            size=self.size,
            min_count=self.min_count,
            form=self.form,
            lowercase=self.lowercase,
        )


@dataclass(frozen=True, kw_only=True)
class ProseData:
    """Where text comes from.

    Args:
        folder: where train, valid and test are; the current one by default.
        train, valid, test: text files, also .gz, .xz, .zst.
        valid_share: without `valid`, this last part of the characters of `train` is the validation text.
        corpus: an embedded corpus instead of files.
        language: of the corpus.
        vocabulary: see ProseVocabulary.
        batches: "stream" reads the text in `rows` long rows, piece after piece, and carries the state from
            batch to batch (recurrent networks); "windows" draws pieces from anywhere (Transformers); "lines"
            takes each line by itself.
        length: tokens of a piece or window; with lines, rows * length tokens make a batch.
        rows: pieces a batch.
    """

    folder: Path = Path()
    train: str | None = None
    valid: str | None = None
    test: str | None = None
    valid_share: float = 0.0
    corpus: str | None = None
    language: str | None = None
    vocabulary: ProseVocabulary = field(default_factory=ProseVocabulary)
    batches: Batching = "stream"
    length: int = 35
    rows: int = 20

    def __post_init__(self) -> None:
        for name in ("length", "rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if (self.corpus is None) == (self.train is None):
            raise ConfigError(
                "give either corpus (an embedded one) or train (your file), and only one of them"
            )
        if (self.corpus is None) != (self.language is None):
            raise ConfigError("language: belongs to corpus; give both, such as libreoffice-help and en")
        if not 0 <= self.valid_share < 1:
            raise ConfigError(f"valid_share: expected a share from 0 to below 1, got {self.valid_share}")
        given = (self.corpus is not None) + (self.valid is not None) + (self.valid_share > 0)
        if given != 1:
            raise ConfigError(
                "valid: expected exactly one validation text: a file (valid), the last part of train "
                "(valid_share: 0.1), or that of a corpus"
            )

    def has(self, split: Split) -> bool:
        """Whether there is such a split."""
        if split == "valid":
            return True
        return self.corpus is not None or getattr(self, split) is not None

    def open(self, split: Split) -> PlainText:
        """The text of a split.

        Raises:
            ConfigError: there is no such split.
            DataError: the file is missing, empty or damaged.
        """
        if self.corpus is not None and self.language is not None:
            return side(self.corpus, self.language, split)
        path, begin, end = self._part(split)
        return PlainText(path, begin=begin, end=end)

    def describe(self, split: Split) -> str:
        """For signatures, such as "libreoffice-help en test"; the file need not be there any more."""
        if self.corpus:
            return f"{self.corpus} {self.language} {split}"
        path, begin, end = self._part(split)
        return path.name if (begin, end) == (0, 1) else f"{path.name}[{begin:g}:{end:g}]"

    def _part(self, split: Split) -> tuple[Path, float, float]:
        """The file of a split, and which share of it is meant."""
        if self.valid_share and split != "test":
            cut = 1 - self.valid_share
            return (self.folder / str(self.train), *((0.0, cut) if split == "train" else (cut, 1.0)))
        path = getattr(self, split)
        if path is None:
            raise ConfigError(
                f"data.{split}: the recipe names no such file; give one with --data FILE, "
                "or score the validation text: --split valid"
            )
        return self.folder / path, 0.0, 1.0
