"""How well word vectors agree with people on pairs of words and on analogies, next to baselines."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.data.questions import Analogy, Questions, WordPair
from weft.errors import DataError
from weft.metrics.metric import MetricScore
from weft.metrics.scored import ScoreWithBaselines, report
from weft.metrics.spearman import interval, spearman
from weft.tasks.embeddings.predictor import WordVectors, unit
from weft.tasks.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANCE_SEED = 1
ROWS = 256  # analogies per step


@dataclass(frozen=True)
class WordsEvaluation(Evaluation):
    """A score, and how many questions it covers."""

    title: str
    outputs: list[str]  # one line per question: the question and the answer
    scores: list[ScoreWithBaselines]  # one score: Spearman x 100, or percent of analogies right
    asked: int
    covered: int
    sections: dict[str, tuple[int, int]]  # for analogies: right, covered
    similar: np.ndarray  # [covered, 2] for pairs: gold score and cosine; for analogies [0, 2]
    shown: list[str]  # words for a map
    vectors: np.ndarray  # [len(shown), D]
    shows: ClassVar[str] = "map of words"

    def text(self) -> str:
        part = f"{self.covered:,} of {self.asked:,} questions have vectors for all their words"
        lines = [
            f"{self.title}: {part} ({100 * self.covered / self.asked:.1f} %)",
            *report(self.scores),
        ]
        for section, (right, covered) in self.sections.items():
            if len(self.sections) > 1:
                lines.append(f"    {section}: {right} of {covered}")
        return "\n".join(lines)

    def facts(self) -> dict[str, Any]:
        """The number of questions, and how many are covered."""
        return {"asked": self.asked, "covered": self.covered, "sections": self.sections}

    def figure(self, name: str) -> "Figure":
        """A map of at most 80 words of the questions."""
        from weft.figures.wordmap import word_map

        score = self.scores[0].score
        title = f"{name}: words of {self.title}, {score.name} {score.value:.1f}"
        return word_map(self.shown, self.vectors, title=title)


def evaluate(vectors: WordVectors, questions: Questions, *, title: str) -> WordsEvaluation:
    """Spearman's correlation x 100 for pairs, percent right for analogies, over covered questions.

    A question is covered if each of its words has a vector. For pairs, the vector may come from n-grams if
    the model has them; for analogies, each word must be in the list, since the answer is searched there.

    Raises:
        DataError: no analogy is covered, or fewer than two pairs.
    """
    found = _pairs(vectors, questions.pairs) if questions.pairs else _analogies(vectors, questions.analogies)
    kind = type(vectors.model).__name__.lower()
    name, value, low, high = (found.pop(key) for key in ("name", "value", "low", "high"))
    signature = (
        f"{found.pop('how')}|model:{kind}|words:{len(vectors.words)}|size:{vectors.matrix.shape[1]}"
        f"|case:{'lc' if vectors.data.lowercase else 'mixed'}|resamples:1000"
    )
    score = MetricScore(name, value, signature, found["covered"], low=low, high=high)
    return WordsEvaluation(title=title, scores=[ScoreWithBaselines(score, found.pop("baselines"))], **found)


def _pairs(vectors: WordVectors, pairs: list[WordPair]) -> dict[str, Any]:
    kept = [pair for pair in pairs if _has(vectors, pair.first) and _has(vectors, pair.second)]
    if len(kept) < 2:
        raise DataError(
            f"expected at least 2 pairs with vectors for both words, got {len(kept)} of {len(pairs)}"
        )
    ours = np.array([vectors.similarity(pair.first, pair.second) for pair in kept])
    gold = np.array([pair.score for pair in kept])
    low, high = interval(ours, gold)
    chance = np.random.default_rng(CHANCE_SEED)
    words = sorted({word for pair in kept for word in pair[:2]})
    drawn = dict(zip(words, unit(chance.standard_normal((len(words), vectors.matrix.shape[1]))), strict=True))
    random = np.array([float(drawn[pair.first] @ drawn[pair.second]) for pair in kept])
    counts = {word: vectors.list.counts[number] for word, number in vectors.list.number.items()}
    seen = np.array(
        [[np.log(1 + counts.get(vectors.data.word(word), 0)) for word in pair[:2]] for pair in kept]
    )
    return {
        "outputs": [f"{a}\t{b}\t{score:.4f}" for (a, b, _), score in zip(kept, ours, strict=True)],
        "name": "Spearman x 100",
        "value": 100 * spearman(ours, gold),
        "low": 100 * low,
        "high": 100 * high,
        "asked": len(pairs),
        "covered": len(kept),
        "baselines": {
            "random vectors (seed 1)": 100 * spearman(random, gold),
            "alike in frequency": 100 * spearman(-np.abs(seen[:, 0] - seen[:, 1]), gold),
        },
        "sections": {},
        "similar": np.stack([gold, ours], 1),
        "how": "cosine",
        "shown": words[:80],
        "vectors": np.stack([vectors.vector(word) for word in words[:80]]),
    }


def _analogies(vectors: WordVectors, asked: list[Analogy]) -> dict[str, Any]:
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
    chance = np.random.default_rng(12345)
    means = [right[chance.integers(len(right), size=len(right))].mean() for _ in range(1000)]
    low, high = np.quantile(means, [0.025, 0.975])
    shown = [vectors.words[number] for number in dict.fromkeys(numbers.ravel().tolist())][:80]
    return {
        "outputs": [
            "\t".join((*one.words[:3], vectors.words[answer]))
            for one, answer in zip(kept, answers, strict=True)
        ],
        "name": "analogies right, percent",
        "value": 100 * float(right.mean()),
        "low": 100 * float(low),
        "high": 100 * float(high),
        "asked": len(asked),
        "covered": len(kept),
        "baselines": {
            "the word nearest to the third": 100 * float((near == numbers[:, 3]).mean()),
            "a word drawn by chance": 100 / len(vectors.words),
        },
        "sections": {section: (hits[section], count) for section, count in covered.items()},
        "similar": np.zeros((0, 2)),
        "how": "3CosAdd",
        "shown": shown,
        "vectors": np.stack([vectors.vector(word) for word in shown]),
    }


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
