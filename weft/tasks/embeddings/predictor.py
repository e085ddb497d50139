"""Word vectors at work: the vector of a word, what is near it, what it is to another as two others are.

Read next: evaluation.py, which scores them; ../../data/vectors.py, the files.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from weft.data.vectors import write_vectors
from weft.errors import DataError
from weft.nn.embed.counts import Glove
from weft.nn.embed.neighbours import Neighbours
from weft.tasks.embeddings.corpus import WordList
from weft.tasks.embeddings.data import WordsData


class Near(NamedTuple):
    """A word and its cosine to the one that was asked for."""

    word: str
    similarity: float


class WordVectors:
    """Words and their vectors.

    Args:
        model: trained.
        words: of the vectors.
        data: how words are spelt.

    Attributes:
        matrix: [V, D] float32, the most frequent word first.

    Example:
        vectors = weft.load("runs/words")
        vectors.nearest("king", 5)
        vectors.analogy("man", "king", "woman", 5)
        vectors.save("words.txt")
    """

    def __init__(self, model: Neighbours | Glove, words: WordList, data: WordsData) -> None:
        self.model, self.list, self.data = model, words, data
        with torch.no_grad():
            self.matrix: np.ndarray = model.vectors().float().cpu().numpy()
        self._unit = unit(self.matrix)

    @property
    def words(self) -> list[str]:
        """All words, the most frequent one first."""
        return self.list.words

    def __contains__(self, word: str) -> bool:
        return self.data.word(word) in self.list.number

    def vector(self, word: str) -> np.ndarray:
        """[D] of a word; from its letters, where training never saw it and the model has n-grams.

        Raises:
            DataError: the word has none.
        """
        spelt = self.data.word(word)
        if spelt in self.list.number:
            return self.matrix[self.list.number[spelt]]  # type: ignore[no-any-return]
        with torch.no_grad():
            unseen = self.model.unseen(spelt) if spelt else None
        if unseen is None or not unseen.any():
            raise DataError(
                f"{word!r} is none of the {len(self.words):,} words that have a vector; "
                "train with model.subwords: true for words that the text has not, or lower data.min_count"
            )
        found: np.ndarray = unseen.float().cpu().numpy()
        return found

    def nearest(self, word: str, count: int = 10) -> list[Near]:
        """The words whose vectors point most nearly the same way, the word itself left out.

        Raises:
            DataError: the word has no vector.
        """
        return self.near(self.vector(word), count, without=[word])

    def analogy(self, a: str, b: str, c: str, count: int = 1) -> list[Near]:
        """d, so that a is to b as c is to d: nearest to b - a + c of unit vectors, the three left out.

        Source: Mikolov, Yih & Zweig 2013, eq. 1 (3CosAdd).
        """
        x, y, z = (unit(self.vector(word)[None])[0] for word in (a, b, c))
        return self.near(y - x + z, count, without=[a, b, c])

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words."""
        a, b = unit(np.stack([self.vector(first), self.vector(second)]))
        return float(a @ b)

    def near(self, vector: np.ndarray, count: int, without: list[str]) -> list[Near]:
        """The words nearest to a vector."""
        scores = self._unit @ unit(vector[None])[0]
        for word in without:
            if word in self:
                scores[self.list.number[self.data.word(word)]] = -np.inf
        count = min(count, int(np.isfinite(scores).sum()))
        best = np.argsort(-scores, kind="stable")[:count]
        return [Near(self.words[place], float(scores[place])) for place in best]

    def predict(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """The nearest words with their cosines."""
        return [tuple(near) for near in self.nearest(word.strip(), count)]  # type: ignore[misc]

    def save(self, path: str | Path) -> None:
        """Write the vectors: .bin (word2vec binary), .glove (GloVe text), anything else word2vec text."""
        write_vectors(Path(path), self.words, self.matrix)


def unit(vectors: np.ndarray) -> np.ndarray:
    """[N, D] with length 1; zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)  # type: ignore[no-any-return]
