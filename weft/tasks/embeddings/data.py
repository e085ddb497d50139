"""A recipe's section `data` for word vectors: text, words and windows.

Read next: corpus.py, which makes batches of the text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weft.data.plain import PlainText, side
from weft.errors import ConfigError
from weft.tasks.task import Split
from weft.text.normalise import normalise
from weft.text.pieces import cutter


@dataclass(frozen=True, kw_only=True)
class WordsData:
    """The source of the text, and which words are neighbours.

    Args:
        folder: folder of train and test; by default the current one.
        train: a text file, also .gz, .xz, .zst.
        test: pairs of words with a similarity (word TAB word TAB number) or analogies (four words per line).
        corpus: an embedded corpus instead of a file.
        language: of the corpus.
        tokens: word (cut at punctuation) or space (split at white space, for tokenised text).
        form: Unicode normal form.
        lowercase: convert the text to lower case.
        min_count: rarer words are removed from the text.
        window: number of words to each side; word2vec draws a number from 1 to this for each word.
        subsample: t; a word with share f of the text is kept with probability min(1, √(t/f) + t/f); 0 keeps
            all. GloVe always keeps all.
        length: words of the text per row of a batch.
        noise: random words per row, which all words of the row share; not for GloVe. Fewer are faster.
        rows: rows per batch; for GloVe rows x length cells of its table.

    Source: Mikolov et al. 2013; the probability is from their program.
    """

    folder: Path = Path()
    train: str | None = None
    test: str | None = None
    corpus: str | None = None
    language: str | None = None
    tokens: Literal["word", "space"] = "word"
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = True
    min_count: int = 5
    window: int = 5
    subsample: float = 0.001
    length: int = 128
    noise: int = 256
    rows: int = 48

    def __post_init__(self) -> None:
        for name in ("min_count", "window", "noise", "rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.length < 2:
            raise ConfigError(f"length: expected at least 2, got {self.length}")
        if not 0 <= self.subsample < 1:
            raise ConfigError(
                f"subsample: expected a number from 0 to below 1 such as 0.001, got {self.subsample}"
            )
        if (self.corpus is None) == (self.train is None):
            raise ConfigError("set exactly one of corpus (embedded) and train (your file)")
        if (self.corpus is None) != (self.language is None):
            raise ConfigError("language: needs corpus; set both, such as libreoffice-help and en")

    def open(self) -> PlainText:
        """The training text.

        Raises:
            DataError: the file is missing, empty or damaged.
        """
        if self.corpus is not None and self.language is not None:
            return side(self.corpus, self.language, "train")
        return PlainText(self.folder / str(self.train))

    def lines(self) -> Iterator[list[str]]:
        """The words of each line."""
        for line in self.open():
            yield self.words(line)

    def words(self, line: str) -> list[str]:
        """The words of a line, as in training."""
        plain = normalise(line, form=self.form, lowercase=self.lowercase)
        if self.tokens == "space":
            return plain.split(" ") if plain else []
        return [part.strip() for part, _ in cutter("word").pre_tokenize_str(plain) if part != " "]

    def word(self, word: str) -> str:
        """One word in the spelling of the vectors."""
        return normalise(word, form=self.form, lowercase=self.lowercase)

    def questions(self, split: Split) -> Path:
        """The file of word pairs or analogies.

        Raises:
            ConfigError: the recipe names no such file.
        """
        if split != "test" or self.test is None:
            raise ConfigError(
                f"data.{split}: the recipe names no word pairs or analogies for it; give a file with --data"
            )
        return self.folder / self.test

    def describe(self) -> str:
        """The name of the text, for titles."""
        return f"{self.corpus} {self.language}" if self.corpus else self.open().name
