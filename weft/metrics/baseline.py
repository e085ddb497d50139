"""Baselines that a translation score must beat before it means anything.

`copy` returns the source. `nearest` is a translation memory: it finds the training sentence most similar
to the source and returns its translation. Read next: bleu.py.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

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
