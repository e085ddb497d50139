"""Trained word vectors: the vector of a word, the words near it, and analogies.

Read next: evaluation.py, which scores them; ../../data/vectors.py, the files.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from weft.data.vectors import write_vectors
from weft.errors import DataError
from weft.nn.embed.counts import Glove
from weft.nn.embed.neighbours import Neighbours
from weft.tasks import predictor
from weft.tasks.embeddings.data import WordList, WordsData
from weft.tasks.inspection import Inspection, ShownVectors
from weft.tasks.predictor import Answer, Json, Place, Raw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAREST = 10


class Near(NamedTuple):
    """A word and its cosine to the input."""

    word: str
    similarity: float


class NearestWords(Answer):
    """The words nearest to a word, or to the answer of an analogy.

    Args:
        vectors: of all words.
        words: one word, or the three of an analogy, a b c.
        near: the nearest words, the nearest one first.
        scores: whether `text` contains the cosines.
    """

    def __init__(
        self, vectors: "WordVectors", words: Sequence[str], near: Sequence[Near], *, scores: bool
    ) -> None:
        self._vectors = vectors
        self._words = words
        self._near = near
        self._scores = scores

    def text(self) -> str:
        """The words of the input, a tab, and the words near them."""
        near = [f"{one.word}={one.similarity:.4f}" if self._scores else one.word for one in self._near]
        return "\t".join([" ".join(self._words), " ".join(near)])

    def json(self) -> Json:
        """The near words with their cosines."""
        return [{"word": one.word, "cosine": one.similarity} for one in self._near]

    def figure(self) -> "Figure":
        """A map of all these words."""
        from weft.figures.wordmap import word_map  # imports matplotlib

        words = [*self._words, *(one.word for one in self._near)]
        rows = np.stack([self._vectors.vector(word) for word in words])
        title = f"what is near {' '.join(self._words)}"
        return word_map(words, rows, title=title, marked=len(self._words))


class WordVectors(predictor.Predictor[list[str]]):
    """Words and their vectors.

    Args:
        model: trained.
        words: of the vectors.
        data: the recipe's section `data`, for the spelling of words.
        count: number of near words in an answer.
        scores: whether the text of an answer contains the cosines.

    Attributes:
        matrix: [V, D] float32, the most frequent word first.

    Example:
        vectors = weft.load("runs/words")
        vectors.nearest("king", 5)
        vectors.analogy("man", "king", "woman", 5)
        vectors.save("words.txt")
    """

    draws = True

    def __init__(
        self,
        model: Neighbours | Glove,
        words: WordList,
        data: WordsData,
        *,
        count: int = NEAREST,
        scores: bool = False,
    ) -> None:
        self.model, self.list, self.data = model, words, data
        self._count = count
        self._scores = scores
        with torch.no_grad():
            self.matrix: np.ndarray = model.vectors().float().cpu().numpy()
        self._unit = unit(self.matrix)

    @property
    def words(self) -> list[str]:
        """All words, the most frequent one first."""
        return self.list.words

    def __contains__(self, word: str) -> bool:
        return self.data.word(word) in self.list.number

    def parse(self, raw: Raw, place: Place) -> list[str]:
        """One word, or three: a b c."""
        words = str(raw).split()
        if len(words) not in (1, 3):
            raise place.refuse(f"expected one word, or three (man king woman), got {len(words)}")
        for word in words:
            try:
                self.vector(word)
            except DataError as error:
                raise place.refuse(str(error)) from None
        return words

    def answers(self, inputs: Sequence[list[str]]) -> Iterator[Answer]:
        for words in inputs:
            if len(words) == 1:
                near = self.nearest(words[0], self._count)
            else:
                near = self.analogy(words[0], words[1], words[2], self._count)
            yield NearestWords(self, words, near, scores=self._scores)

    def vector(self, word: str) -> np.ndarray:
        """[D] the vector of a word; for an unseen word, from its letters if the model has n-grams.

        Raises:
            DataError: the word has no vector.
        """
        spelt = self.data.word(word)
        if spelt in self.list.number:
            return self.matrix[self.list.number[spelt]]  # type: ignore[no-any-return]
        with torch.no_grad():
            unseen = self.model.unseen(spelt) if spelt else None
        if unseen is None or not unseen.any():
            raise DataError(
                f"{word!r} is not among the {len(self.words):,} words with a vector; "
                "train with model.subwords: true for unseen words, or lower data.min_count"
            )
        found: np.ndarray = unseen.float().cpu().numpy()
        return found

    def nearest(self, word: str, count: int = NEAREST) -> list[Near]:
        """The words with the largest cosine to a word, excluding the word itself.

        Raises:
            DataError: the word has no vector.
        """
        return self.near(self.vector(word), count, without=[word])

    def analogy(self, a: str, b: str, c: str, count: int = 1) -> list[Near]:
        """The words d nearest to b - a + c of unit vectors (a is to b as c is to d), excluding a, b and c.

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

    def predict(self, raw: str, count: int = NEAREST) -> list[tuple[str, float]]:
        """The words nearest to a word, with their cosines."""
        return [(near.word, near.similarity) for near in self.nearest(raw.strip(), count)]

    def save(self, path: str | Path) -> None:
        """Write the vectors: .bin (word2vec binary), .glove (GloVe text), otherwise word2vec text."""
        write_vectors(Path(path), self.words, self.matrix)


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors [N, D] scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)  # type: ignore[no-any-return]


def inspect_words(vectors: WordVectors, text: str) -> Inspection:
    """Words and their nearest neighbours among the word vectors.

    Args:
        vectors: of a run.
        text: words separated by spaces; the answer names those without a vector.

    Raises:
        DataError: no word has a vector.
    """
    asked = text.split()
    known = [word for word in asked if word in vectors]
    if not known:
        raise DataError(
            f"expected a word that has a vector, got {' '.join(asked)[:60]}; the run has vectors of "
            f"{len(vectors.words):,} words of its training text"
        )
    rows = [vectors.list.number[vectors.data.word(word)] for word in known]
    near = " ".join(one.word for one in vectors.nearest(known[0], NEAREST))
    unknown = [word for word in asked if word not in vectors]
    left = f" (without a vector: {' '.join(unknown)[:200]})" if unknown else ""
    return Inspection(
        text=text,
        answer=f"near {known[0]}: {near}{left}",
        vectors=ShownVectors(vectors.words, vectors.matrix, rows, known, None),
    )
