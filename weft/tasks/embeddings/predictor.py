"""Trained word vectors: the vector of a word, the words near it, and analogies.

`evaluate` says how well they agree with people on pairs of words and on analogies, next to baselines.
Read next: ../../data/vectors.py, the files.
"""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from weft.data.vectors import Analogy, Questions, WordPair, write_vectors
from weft.errors import DataError, ShapeError
from weft.figures.records import Figure
from weft.metrics.accuracy import Accuracy
from weft.metrics.metric import ItemKind
from weft.metrics.numbers import Spearman
from weft.metrics.scored import ComparedOutputs, of_rows, ratio, report
from weft.nn.embed.neighbours import Glove, Neighbours
from weft.tasks import predictor
from weft.tasks.embeddings.data import WordList, WordsData
from weft.tasks.evaluation import Evaluation
from weft.tasks.inspection import Inspection, ShownVectors
from weft.tasks.predictor import Answer, Json, Place, Raw, as_text
from weft.wording import kind_of

NEAREST = 10


class Near(NamedTuple):
    """A word and its cosine to the input."""

    word: str
    similarity: float


@dataclass(eq=False)
class NearestWords(Answer):
    """The words nearest to a word, or to the answer of an analogy."""

    vectors: "WordVectors"
    words: Sequence[str]  # one word, or the three of an analogy, a b c
    near: Sequence[Near]
    scores: bool

    def text(self) -> str:
        near = [f"{one.word}={one.similarity:.4f}" if self.scores else one.word for one in self.near]
        return "\t".join([" ".join(self.words), " ".join(near)])

    def json(self) -> Json:
        return [{"word": one.word, "cosine": one.similarity} for one in self.near]

    def figure(self) -> "Figure":
        from weft.figures.charts import word_map

        words = [*self.words, *(one.word for one in self.near)]
        rows = np.stack([self.vectors.vector(word) for word in words])
        title = f"what is near {' '.join(self.words)}"
        return word_map(words, rows, title=title, marked=len(self.words))


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

        >>> import torch
        >>> from weft.nn import Neighbours
        >>> from weft.nn.embed.neighbours import WordTable
        >>> from weft.tasks.embeddings.data import WordList, WordsData
        >>> table = WordTable(3, 2)
        >>> table.table.weight.data = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])  # [V, D]
        >>> words = WordList(["cat", "dog", "sun"], [3, 2, 1])
        >>> vectors = WordVectors(Neighbours(table, 3), words, WordsData(train="text.txt"))
        >>> [near.word for near in vectors.nearest("cat", 2)]
        ['dog', 'sun']
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
        words = as_text(raw, place).split()
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
            yield NearestWords(self, words, near, self._scores)

    def vector(self, word: str) -> np.ndarray:
        """[D] the vector of a word; for an unseen word, from its letters if the model has n-grams.

        Raises:
            DataError: the word has no vector.
        """
        if not isinstance(word, str):
            raise DataError(f"expected a word, got {kind_of(word)}; predict answers a list of words")
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
        """The words nearest to a vector [D]."""
        if vector.shape != self.matrix.shape[1:]:
            raise ShapeError(f"expected a vector [{self.matrix.shape[1]}], got {list(vector.shape)}")
        if not isinstance(count, int) or count < 1:
            raise DataError(f"count: expected a whole number from 1, got {count!r}")
        scores = self._unit @ unit(vector[None])[0]
        for word in without:
            if word in self:
                scores[self.list.number[self.data.word(word)]] = -np.inf
        count = min(count, int(np.isfinite(scores).sum()))
        best = np.argsort(-scores, kind="stable")[:count]
        return [Near(self.words[place], float(scores[place])) for place in best]

    def predict(self, raw: Any, count: int = NEAREST) -> Any:
        """The words nearest to a word, or to the answer of an analogy (three words), with their cosines.

        Args:
            raw: see Predictor.predict.
            count: number of words.
        """
        other = copy.copy(self)
        other._count = count
        return super(WordVectors, other).predict(raw)

    def value(self, answer: NearestWords) -> list[tuple[str, float]]:
        return [(near.word, near.similarity) for near in answer.near]

    def save(self, folder: str | Path) -> None:
        """Write the vectors: .bin (word2vec binary), .glove (GloVe text) or another file (word2vec text).

        A name without an extension is that of a folder for the whole model, as for every task.
        """
        if not Path(folder).suffix:
            super().save(folder)
        else:
            write_vectors(Path(folder), self.words, self.matrix)


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors [N, D] scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)  # type: ignore[no-any-return]


def inspect_words(vectors: WordVectors, text: str) -> Inspection:
    """Words and their nearest neighbours among the word vectors."""
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


CHANCE_SEED = 1
ROWS = 256  # analogies per step


@dataclass(frozen=True)
class WordsEvaluation(Evaluation):
    """A score, and how many questions it covers."""

    asked: int
    covered: int
    sections: dict[str, tuple[int, int]]  # for analogies: right, covered
    shown: list[str]  # words for a map
    vectors: np.ndarray  # [len(shown), D]
    shows: ClassVar[str] = "map of words"
    offers: ClassVar[tuple[ItemKind, ...]] = ("numbers", "labels")

    def text(self, *, full: bool = True) -> str:
        part = f"{self.covered:,} of {self.asked:,} questions have vectors for all their words"
        lines = [
            f"{self.title}: {part} ({100 * self.covered / self.asked:.1f} %)",
            *report(self.scores),
        ]
        for section, (right, covered) in self.sections.items():
            if len(self.sections) > 1:
                lines.append(f"    {section}: {right} of {covered}")
        return "\n".join([*lines, self.scores[0].verdict()])

    def facts(self) -> dict[str, Any]:
        return {"asked": self.asked, "covered": self.covered, "sections": self.sections}

    def figure(self, name: str) -> "Figure":
        from weft.figures.charts import word_map

        score = self.scores[0].score
        title = f"{name}: words of {self.title}, {score.name} {score.value:.1f}"
        return word_map(self.shown, self.vectors, title=title)


def evaluate(vectors: WordVectors, questions: Questions, *, title: str) -> WordsEvaluation:
    """Spearman's correlation x 100 for pairs, percent right for analogies, over covered questions.

    In pairs n-grams may give a word its vector; in analogies each word must be in the list that is searched.
    """
    if questions.pairs:
        return _pairs(vectors, questions.pairs, title)
    return _analogies(vectors, questions.analogies, title)


def _signature(vectors: WordVectors, how: str) -> str:
    kind = type(vectors.model).__name__.lower()
    case = "lc" if vectors.data.lowercase else "mixed"
    size = f"words:{len(vectors.words)}|size:{vectors.matrix.shape[1]}"
    return f"{how}|model:{kind}|{size}|case:{case}"


def _pairs(vectors: WordVectors, pairs: list[WordPair], title: str) -> WordsEvaluation:
    kept = [pair for pair in pairs if _has(vectors, pair.first) and _has(vectors, pair.second)]
    if len(kept) < 2:
        raise DataError(
            f"expected at least 2 pairs with vectors for both words, got {len(kept)} of {len(pairs)}"
        )
    ours = np.array([vectors.similarity(pair.first, pair.second) for pair in kept])
    gold = np.array([pair.score for pair in kept])
    chance = np.random.default_rng(CHANCE_SEED)
    words = sorted({word for pair in kept for word in pair[:2]})
    drawn = dict(zip(words, unit(chance.standard_normal((len(words), vectors.matrix.shape[1]))), strict=True))
    random = np.array([float(drawn[pair.first] @ drawn[pair.second]) for pair in kept])
    counts = {word: vectors.list.counts[number] for word, number in vectors.list.number.items()}
    seen = np.array(
        [[np.log(1 + counts.get(vectors.data.word(word), 0)) for word in pair[:2]] for pair in kept]
    )
    lowest = {
        "random vectors (seed 1)": random,
        "alike in frequency": -np.abs(seen[:, 0] - seen[:, 1]),
    }
    compared = ComparedOutputs(ours, gold, None, lowest, "numbers", about=_signature(vectors, "cosine"))
    return WordsEvaluation(
        title=title,
        outputs=[f"{a}\t{b}\t{cosine:.4f}" for (a, b, _), cosine in zip(kept, ours, strict=True)],
        scores=[compared.scored(Spearman())],
        compared=[compared],
        asked=len(pairs),
        covered=len(kept),
        sections={},
        shown=words[:80],
        vectors=np.stack([vectors.vector(word) for word in words[:80]]),
    )


def _analogies(vectors: WordVectors, asked: list[Analogy], title: str) -> WordsEvaluation:
    kept = [one for one in asked if all(word in vectors for word in one.words)]
    if not kept:
        raise DataError(f"expected an analogy with vectors for all four words, got none of {len(asked)}")
    numbers = np.array([[vectors.list.number[vectors.data.word(word)] for word in one.words] for one in kept])
    every = unit(vectors.matrix)
    a, b, c = (every[numbers[:, place]] for place in range(3))
    answers = _best(every, b - a + c, numbers[:, :3])
    near = _best(every, c, numbers[:, :3])
    right = answers == numbers[:, 3]
    covered = Counter(one.section for one in kept)
    hits = Counter(one.section for one, hit in zip(kept, right, strict=True) if hit)
    shown = [vectors.words[number] for number in dict.fromkeys(numbers.ravel().tolist())][:80]
    outputs, closest, wanted = (
        [vectors.words[number] for number in chosen] for chosen in (answers, near, numbers[:, 3])
    )
    nearest, signature = "the word nearest to the third", _signature(vectors, "3CosAdd")
    compared = ComparedOutputs(outputs, wanted, None, {nearest: closest}, "labels", about=signature)
    score = of_rows(
        ratio("analogies right, percent", signature, higher_is_better=True, form="percent"),
        Accuracy().rows(outputs, wanted),
        beside={nearest: Accuracy().rows(closest, wanted)},
        baselines={"a word drawn by chance": 100 / len(vectors.words)},
        items=compared.fingerprint(),
    )
    return WordsEvaluation(
        title=title,
        outputs=["\t".join((*one.words[:3], answer)) for one, answer in zip(kept, outputs, strict=True)],
        scores=[score],
        compared=[compared],
        asked=len(asked),
        covered=len(kept),
        sections={section: (hits[section], count) for section, count in covered.items()},
        shown=shown,
        vectors=np.stack([vectors.vector(word) for word in shown]),
    )


def _best(every: np.ndarray, wanted: np.ndarray, without: np.ndarray) -> np.ndarray:
    """[N] the number of the word nearest to each vector, excluding the words in `without`."""
    found = []
    for at in range(0, len(wanted), ROWS):
        scores = wanted[at : at + ROWS] @ every.T
        np.put_along_axis(scores, without[at : at + ROWS], -np.inf, 1)
        found.append(scores.argmax(1))
    return np.concatenate(found)


def _has(vectors: WordVectors, word: str) -> bool:
    try:
        vectors.vector(word)
    except DataError:
        return False
    return True
