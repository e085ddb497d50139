"""METEOR: one-to-one word matches, recall weighted above precision, and a penalty for wrong order.

Words are matched exactly first, then optionally by stem. The paper's third stage, synonyms, needs WordNet
and is not included; the signature names the stages. Read next: metric.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.bleu import WordMetric
from weft.shapes import check_choice

Average = Literal["corpus", "sentences"]

STEMMERS: tuple[str, ...] = (
    *("porter", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian"),
    *("norwegian", "portuguese", "romanian", "russian", "spanish", "swedish"),
)


class Meteor(WordMetric):
    """Corpus METEOR, 0..1.

    P = m/h, R = m/r, F = P R / (α P + (1 - α) R), penalty = γ (chunks / m)^β, METEOR = (1 - penalty) F,
    where m counts matched words, h and r count the words of hypotheses and references, and a chunk is a run
    of matches that is adjacent on both sides. By default all counts are summed over the corpus first, as in
    the paper. Most papers and toolkits report the mean of sentence scores instead: average="sentences".

    Args:
        tokenize: as in Bleu.
        stem: "none", or an nltk stemmer for the second stage: "porter" or a language.
        average: "corpus" sums all counts first; "sentences" averages sentence scores.
        alpha, beta, gamma: 0.9, 3, 0.5 in the 2005 paper; 0.81, 0.83, 0.28 as tuned in 2007.

    Raises:
        ConfigError: unknown tokeniser, stemmer or average, or nltk or MeCab is not installed.

    Source: Banerjee & Lavie 2005; Lavie & Agarwal 2007. The paper leaves one tie open: among the alignments
        with the fewest crossings we take the one with the fewest chunks.

    Example:
        >>> round(Meteor().score(["on the mat sat the cat"], ["the cat sat on the mat"]).value, 4)
        0.5
    """

    name = "METEOR"
    graded = True

    def __init__(
        self,
        *,
        tokenize: str = "auto",
        stem: str = "none",
        average: Average = "corpus",
        alpha: float = 0.9,
        beta: float = 3.0,
        gamma: float = 0.5,
    ) -> None:
        super().__init__(tokenize=tokenize)
        check_choice("average", average, Average)
        self.average = average
        self.stem, self.alpha, self.beta, self.gamma = stem, alpha, beta, gamma
        self._stages: list[Callable[[str], str]] = [str]
        if stem != "none":
            self._stages.append(_stemmer(stem))

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 4]: matches, chunks, words of hypothesis and reference; [N, 2] if averaged over sentences."""
        line = self.fitted(references)._line
        rows = [line(ours, theirs) for ours, theirs in zip(hypotheses, references, strict=True)]
        counts = np.array(rows, dtype=np.float64).reshape(-1, 4)
        return counts if self.average == "corpus" else self.by_sentence(counts)

    def by_sentence(self, counts: np.ndarray) -> np.ndarray:
        """Turn counts [N, 4] into [N, 2]: the score of each sentence, and 1."""
        return np.stack([self._score(counts), np.ones(len(counts))], 1)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 4] or [..., 2] to [...]."""
        return super().value(totals) if self.average == "sentences" else self._score(totals)

    def _score(self, totals: np.ndarray) -> np.ndarray:
        m, runs, h, r = np.moveaxis(totals, -1, 0)
        matches = np.maximum(m, 1)
        # F = P R / (α P + (1-α) R) with P = m/h, R = m/r, multiplied out so that m = 0 needs no special case
        f = m / np.maximum(self.alpha * r + (1 - self.alpha) * h, 1e-9)
        return (1 - self.gamma * (runs / matches) ** self.beta) * f

    def signature(self) -> str:
        stages = "exact" if self.stem == "none" else f"exact+{self.stem} stem"
        return (
            f"nrefs:1|case:lc|tok:{self.tokenization}|stages:{stages}|synonyms:no|average:{self.average}"
            f"|alpha:{self.alpha:g}|beta:{self.beta:g}|gamma:{self.gamma:g}"
        )

    def _line(self, ours: str, theirs: str) -> tuple[int, int, int, int]:
        hypothesis = self._tokenizer(ours.lower()).split()
        reference = self._tokenizer(theirs.lower()).split()
        links: dict[int, int] = {}
        for stage in self._stages:
            links = align([stage(word) for word in hypothesis], [stage(word) for word in reference], links)
        return len(links), chunks(links), len(hypothesis), len(reference)


def _stemmer(name: str) -> Callable[[str], str]:
    if name not in STEMMERS:
        raise ConfigError(f"meteor: stem is {name!r}; choose none or one of {', '.join(STEMMERS)}")
    try:
        from nltk.stem.porter import PorterStemmer
        from nltk.stem.snowball import SnowballStemmer
    except ImportError as error:
        raise ConfigError(
            f"meteor: stem {name!r} needs the package nltk, which is not installed; "
            "run `pip install nltk` or use stem: none"
        ) from error
    return (PorterStemmer() if name == "porter" else SnowballStemmer(name)).stem


WIDTH = 40


class _Partial(NamedTuple):
    crossings: int
    chunks: int
    used: int  # bit j is set if reference word j is linked
    adjacent: int  # the reference word that would continue the chunk, -1 if none
    links: tuple[tuple[int, int], ...]


def align(hypothesis: Sequence[str], reference: Sequence[str], links: Mapping[int, int]) -> dict[int, int]:
    """Link equal words and keep the links of earlier stages."""
    taken = set(links.values())
    places: dict[str, list[int]] = defaultdict(list)
    for j, word in enumerate(reference):
        if j not in taken:
            places[word].append(j)
    ahead = Counter(word for i, word in enumerate(hypothesis) if i not in links and word in places)
    wanted = {word: min(count, len(places[word])) for word, count in ahead.items()}

    beam = [_Partial(0, 0, 0, -1, ())]
    for i, word in enumerate(hypothesis):
        if i in links:
            options = [_link(partial, i, links[i]) for partial in beam]
        elif word in places:
            ahead[word] -= 1
            options = [
                option
                for partial in beam
                for option in _choices(partial, i, places[word], wanted[word], ahead[word])
            ]
        else:
            options = [partial._replace(adjacent=-1) for partial in beam]
        best: dict[tuple[int, int], _Partial] = {}
        for option in sorted(options):
            best.setdefault((option.used, option.adjacent), option)
        beam = list(best.values())[:WIDTH]
    return dict(beam[0].links)


def chunks(links: Mapping[int, int]) -> int:
    """Runs of links that are adjacent on both sides."""
    return sum(links.get(i - 1, -2) != j - 1 for i, j in links.items())


def _link(partial: _Partial, i: int, j: int) -> _Partial:
    return _Partial(
        partial.crossings + (partial.used >> (j + 1)).bit_count(),
        partial.chunks + (j != partial.adjacent),
        partial.used | 1 << j,
        j + 1,
        (*partial.links, (i, j)),
    )


def _choices(partial: _Partial, i: int, places: list[int], wanted: int, ahead: int) -> list[_Partial]:
    """Ways to link, or skip, a word; equal words in order, as crossing them never reduces the crossings."""
    done = [place for place, j in enumerate(places) if partial.used >> j & 1]
    missing = wanted - len(done)
    first = done[-1] + 1 if done else 0
    last = len(places) - missing  # leave enough places for the remaining links
    options = [_link(partial, i, j) for j in places[first : last + 1]] if missing else []
    if ahead >= missing:
        options.append(partial._replace(adjacent=-1))
    return options
