"""A recipe's section `model` for word vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.errors import ConfigError
from weft.nn.embed.counts import Glove
from weft.nn.embed.neighbours import Neighbours
from weft.nn.embed.subwords import Subwords, WordTable
from weft.setting_types import Size


@dataclass(frozen=True, kw_only=True)
class WordsModel:
    """The training objective and the size of the vectors.

    Args:
        objective: skipgram, cbow (both word2vec) or glove.
        size: D, features of a vector.
        negatives: K, random words per neighbour; not for glove.
        subwords: a word's vector is the mean of its own and those of its letter n-grams (fastText), so that
            unseen words have one; not for glove.
        shortest, longest: number of letters in an n-gram.
        buckets: number of rows for n-grams, assigned by a hash.
        most, alpha: x_max and α of glove's weights.
    """

    objective: Literal["skipgram", "cbow", "glove"] = "skipgram"
    size: Size = 100
    negatives: int = 5
    subwords: bool = False
    shortest: int = 3
    longest: int = 6
    buckets: int = 50_000
    most: float = 100.0
    alpha: float = 0.75

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("negatives", 1), ("shortest", 2), ("buckets", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if self.longest < self.shortest:
            raise ConfigError(f"longest: expected at least shortest ({self.shortest}), got {self.longest}")
        if self.objective == "glove" and self.subwords:
            raise ConfigError(
                "subwords: expected false, as glove counts whole words; or set another objective"
            )
        if self.most <= 0 or self.alpha < 0:
            raise ConfigError(
                f"most: expected most above 0 and alpha at least 0, got {self.most} and {self.alpha}"
            )

    def build(self, words: Sequence[str]) -> Neighbours | Glove:
        """A new model for these words."""
        if self.objective == "glove":
            return Glove(len(words), self.size, most=self.most, alpha=self.alpha)
        inner: WordTable | Subwords
        if self.subwords:
            inner = Subwords(
                words, self.size, shortest=self.shortest, longest=self.longest, buckets=self.buckets
            )
        else:
            inner = WordTable(len(words), self.size)
        return Neighbours(inner, len(words), objective=self.objective, negatives=self.negatives)
