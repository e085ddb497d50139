"""Baselines that a score must beat before it means anything, of translations, tags and forecasts.

`copy` returns the source. `nearest` is a translation memory: it finds the training sentence most similar
to the source and returns its translation. Read next: bleu.py; naive_bayes.py, the baseline of classification.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import DataError
from weft.wording import plural
from weft.words import words


def copy(sources: Sequence[str]) -> list[str]:
    """The sources themselves as outputs.

    Example:
        >>> copy(["a b", "c"])
        ['a b', 'c']
    """
    return list(sources)


def nearest(train_sources: Sequence[str], train_targets: Sequence[str], sources: Sequence[str]) -> list[str]:
    """The target of the most similar training source, for each source.

    Similarity is the cosine of TF-IDF vectors over lower-cased words, w(t, d) = tf(t, d) · idf(t) with
    idf(t) = ln((1 + N) / (1 + df(t))) + 1. Ties go to the first training line. A source that shares no word
    with the training text is returned unchanged.

    Args:
        train_sources, train_targets: [N] lines of the translation memory.
        sources: [M] lines to look up.

    Raises:
        DataError: the training text is empty, or its sides differ in length.

    Example:
        >>> nearest(["a red cat", "a dog"], ["un gato rojo", "un perro"], ["the dog"])
        ['un perro']
    """
    size = len(train_sources)
    if size != len(train_targets):
        raise DataError(
            f"baseline: expected one target for each training source, got {plural(size, 'source')} and "
            f"{plural(len(train_targets), 'target')}"
        )
    if size == 0:
        raise DataError("baseline: expected at least 1 training pair, got 0")
    numbers: dict[str, int] = {}
    terms, lines, counts = [], [], []
    for row, bag in enumerate(_bags(train_sources)):
        for word, count in bag.items():
            terms.append(numbers.setdefault(word, len(numbers)))
            lines.append(row)
            counts.append(count)
    term, line = np.array(terms, np.int64), np.array(lines, np.int64)
    idf = np.log((1 + size) / (1 + np.bincount(term, minlength=len(numbers)))) + 1
    weight = np.array(counts, np.float64) * idf[term]
    weight /= np.sqrt(np.bincount(line, weight**2, minlength=size))[line]

    # the inverted index: the lines and weights of a term are contiguous
    order = np.argsort(term, kind="stable")
    line, weight = line[order], weight[order]
    ends = np.concatenate([[0], np.bincount(term, minlength=len(numbers)).cumsum()])

    outputs = []
    for source, bag in zip(sources, _bags(sources), strict=True):
        # the source's own norm scales all its cosines equally, so we leave it out
        similarity = np.zeros(size)
        for word, times in bag.items():
            if word in numbers:
                number = numbers[word]
                span = slice(ends[number], ends[number + 1])
                similarity[line[span]] += times * idf[number] * weight[span]
        best = int(similarity.argmax())
        outputs.append(train_targets[best] if similarity[best] > 0 else source)
    return outputs


def _bags(lines: Sequence[str]) -> Iterator[Counter[str]]:
    for line in lines:
        yield Counter(words(line.lower()))


LONGEST = 5
"""Length of the longest suffix, in letters."""


class MostFrequentTag:
    """Tag by counts from the training data.

    A known word gets its most frequent tag. An unknown word gets the most frequent tag of the rare words
    (seen at most `rare` times) that share its longest known suffix of 5, 4, .. 1 letters and begin with the
    same kind of letter (capital or not), or that of all rare words of that kind. Ties go to the tag seen
    first.
    """

    def __init__(self, examples: Iterable[tuple[Sequence[str], Sequence[str]]], *, rare: int = 10) -> None:
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        for sentence, tags in examples:
            for word, tag in zip(sentence, tags, strict=True):
                seen[word][tag] += 1
        if not seen:
            raise DataError("baseline: expected at least 1 tagged word, got 0")
        endings: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
        for word, counts in seen.items():
            if counts.total() <= rare:
                for key in _endings(word):
                    endings[key].update(counts)
        self.words = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
        self.endings = {key: counts.most_common(1)[0][0] for key, counts in endings.items()}
        everything = sum((counts for counts in seen.values()), Counter())
        self.most = everything.most_common(1)[0][0]

    def tag(self, words: Sequence[str]) -> list[str]:
        """One tag per word."""
        return [self.words.get(word) or self._unknown(word) for word in words]

    def _unknown(self, word: str) -> str:
        return next((self.endings[key] for key in _endings(word) if key in self.endings), self.most)


def _endings(word: str) -> list[tuple[str, bool]]:
    """Suffixes of a word, longest first, ending with the empty one."""
    capital = word[:1].isupper()
    return [(word[len(word) - size :].lower(), capital) for size in range(min(LONGEST, len(word)), -1, -1)]


Baselines = Mapping[str, Callable[[np.ndarray], np.ndarray]]
"""Functions from pasts [B, L] to forecasts [B, H], by name."""


def seasonal(past: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The last season, repeated; the last value if it is 1, or the past is shorter than it."""
    season = season if season <= past.shape[1] else 1
    return np.tile(past[:, -season:], (1, -(-horizon // season)))[:, :horizon]


class NaiveErrors(NamedTuple):
    """The errors of repeating the last season in a training part: the units of MASE and of RMSSE."""

    absolute: float  # mean
    squared: float  # mean


def naive_errors(train: np.ndarray, season: int) -> NaiveErrors:
    """The errors of repeating the last season of a training part [T]; NaN if it never changes.

    Source: Hyndman and Koehler 2006.
    """
    steps = np.abs(train[season:] - train[:-season])
    steps = steps[np.isfinite(steps)]
    if not steps.any():
        return NaiveErrors(float("nan"), float("nan"))
    return NaiveErrors(float(steps.mean()), float(np.square(steps).mean()))


class Blocks(NamedTuple):
    """Windows that are resampled together, as neighbours share most of their values."""

    numbers: np.ndarray  # [N] block number of each window
    about: str  # how the blocks were made, for signatures


def blocks_of(chosen: np.ndarray, horizon: int, *, apart: bool) -> Blocks:
    """Blocks of `horizon` consecutive forecast origins; a window is a series number and its first future row.

    Source: Carlstein 1986, "The use of subseries values for estimating the variance of a general statistic
    from a stationary sequence" (blocks that do not overlap).
    """
    times = (chosen[:, 1] - chosen[:, 1].min()) // max(1, horizon)
    keys = np.stack([chosen[:, 0] if apart else np.zeros_like(times), times], 1)
    numbers = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return Blocks(numbers, f"blocks of {horizon} origins" + (" of a series" if apart else ""))
