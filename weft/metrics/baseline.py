"""Baselines: what a translation score must beat before it means anything.

`copy` gives the source back. `nearest` is a translation memory: it looks up the training sentence most
like the source and gives that one's translation. Read next: bleu.py.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from weft.errors import DataError

# One word, one sign, or one character of a script that writes no spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")

WORSE = "worse than the baseline"
"""What a report says of a model that a baseline beats."""


def copy(sources: Sequence[str]) -> list[str]:
    """The sources themselves as outputs."""
    return list(sources)


def nearest(train_sources: Sequence[str], train_targets: Sequence[str], sources: Sequence[str]) -> list[str]:
    """For each source the target of the most similar training source.

    Similarity is the cosine of TF-IDF vectors over lower-cased words, w(t, d) = tf(t, d) · idf(t) with
    idf(t) = ln((1 + N) / (1 + df(t))) + 1; of equals the first in the training text. A source that shares
    no word with the training text is given back as it is.

    Args:
        train_sources, train_targets: [N] the memory, line by line.
        sources: [M] what to look up.

    Raises:
        DataError: no memory, or sides of unequal length.

    Example:
        >>> nearest(["a red cat", "a dog"], ["un gato rojo", "un perro"], ["the dog"])
        ['un perro']
    """
    size = len(train_sources)
    if size != len(train_targets):
        raise DataError(
            f"baseline: expected one target for each training source, got {size:,} sources and "
            f"{len(train_targets):,} targets"
        )
    if size == 0:
        raise DataError("baseline: expected at least 1 training pair, got 0")
    numbers: dict[str, int] = {}
    terms, lines, counts = [], [], []
    for row, words in enumerate(_bags(train_sources)):
        for word, count in words.items():
            terms.append(numbers.setdefault(word, len(numbers)))
            lines.append(row)
            counts.append(count)
    term, line = np.array(terms, np.int64), np.array(lines, np.int64)
    idf = np.log((1 + size) / (1 + np.bincount(term, minlength=len(numbers)))) + 1
    weight = np.array(counts, np.float64) * idf[term]
    weight /= np.sqrt(np.bincount(line, weight**2, minlength=size))[line]

    # the inverted index: lines and weights of each term stand together
    order = np.argsort(term, kind="stable")
    line, weight = line[order], weight[order]
    ends = np.concatenate([[0], np.bincount(term, minlength=len(numbers)).cumsum()])

    outputs = []
    for source, words in zip(sources, _bags(sources), strict=True):
        # the source's own length scales all its cosines alike and is left out
        similarity = np.zeros(size)
        for word, times in words.items():
            if word in numbers:
                number = numbers[word]
                span = slice(ends[number], ends[number + 1])
                similarity[line[span]] += times * idf[number] * weight[span]
        best = int(similarity.argmax())
        outputs.append(train_targets[best] if similarity[best] > 0 else source)
    return outputs


def _bags(lines: Sequence[str]) -> Iterator[Counter[str]]:
    for line in lines:
        yield Counter(_WORD.findall(line.lower()))


def beside(value: float, baseline: float, *, higher: bool = True) -> str:
    """What stands in the line of a baseline that the model does not beat; "" where it does.

    Args:
        value: the model's score.
        baseline: the same score of the baseline.
        higher: whether higher is better.

    Example:
        >>> beside(0.3, 0.2, higher=False)
        '  <- the model is worse than the baseline'
    """
    if value == baseline:
        return "  <- the model equals the baseline"
    better = value > baseline if higher else value < baseline
    return "" if better else f"  <- the model is {WORSE}"
