"""A score for short, medium and long sentences, which shows where models without attention fail.

Read next: ../figures/charts.py, which draws the table.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.intervals import with_interval
from weft.metrics.metric import Metric, MetricScore, check_items
from weft.words import units

EDGES = (10, 20, 30)


class LengthRow(NamedTuple):
    """One bin: its label ("11-20"), its number of sentences, and their score or None if the bin is empty."""

    label: str
    sentences: int
    score: MetricScore | None


def count_words(line: str) -> int:
    """Number of words separated by white space; in a script without spaces, of its signs."""
    return len(units(line))


def by_length(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str],
    *,
    edges: Sequence[int] = EDGES,
    length: Callable[[str], int] = count_words,
) -> list[LengthRow]:
    """The metric for each bin of source lengths, with counts and confidence intervals.

    A bin's score is the corpus score of its sentences, not the mean of sentence scores.

    Source: Bahdanau et al. 2014, figure 2, with lengths in bins.
    """
    if not edges or list(edges) != sorted(set(edges)):
        raise ConfigError(f"by length: expected rising edges such as 10, 20, 30, got {list(edges)}")
    check_items(hypotheses, references, sources)
    metric = metric.fitted(references, hypotheses)
    statistics = metric.rows(hypotheses, references, sources)
    bins = np.searchsorted(edges, [length(line) for line in sources])  # edges[k-1] < length <= edges[k]
    rows = []
    for number, label in enumerate(_labels(edges)):
        inside = statistics[bins == number]
        score = with_interval(metric, inside) if len(inside) else None
        rows.append(LengthRow(label, len(inside), score))
    return rows


def table(rows: Sequence[LengthRow], unit: str = "words") -> str:
    """The rows as a plain-text table with a header."""
    width = max(6, len(unit))
    lines = [f"{unit:<{width}} {'sentences':>9} {'score':>8}  95 % interval"]
    for label, count, score in rows:
        value, interval = "-", "-"
        if score is not None:
            digits = 2 if abs(score.value) > 1 else 4
            value = f"{score.value:.{digits}f}"
            if score.low is not None and score.high is not None:
                interval = f"{score.low:.{digits}f} to {score.high:.{digits}f}"
        lines.append(f"{label:<{width}} {count:>9,} {value:>8}  {interval}")
    return "\n".join(lines)


def _labels(edges: Sequence[int]) -> list[str]:
    inner = [f"{low + 1}-{high}" for low, high in pairwise(edges)]
    return [f"<={edges[0]}", *inner, f">{edges[-1]}"]
