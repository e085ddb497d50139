"""The contract of a metric: numbers a sentence, summed, then one value; so everything else is free.

A metric is added by one file in this folder: a class with `statistics`, `value` and `signature`. It then
has confidence intervals (bootstrap.py), significance between two systems, a table by sentence length
(bylength.py) and the law suite, because all of these only sum rows of statistics.
Read next: bleu.py, the best known one; accuracy.py, the shortest one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from weft.errors import DataError


class Score(NamedTuple):
    """A value and what it takes to believe it.

    Fields:
        value: on the metric's usual scale, BLEU 0..100, accuracy 0..1.
        signature: how it was computed, enough to compute it again.
        size: what was scored: lines, or the tokens of a perplexity.
        low, high: the ends of the confidence interval; None where none was asked for.
    """

    name: str
    value: float
    signature: str
    size: int
    higher_is_better: bool = True
    low: float | None = None
    high: float | None = None

    @property
    def digits(self) -> int:
        """After the point, when the value is shown."""
        size = abs(self.value)
        return 2 if size > 1 else 4 if size >= 0.01 or size == 0 else 6

    def __str__(self) -> str:
        digits = self.digits
        interval = ""
        if self.low is not None and self.high is not None:
            interval = f" [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.name} {self.value:.{digits}f}{interval} ({self.signature}|n:{self.size})"


class Metric(ABC):
    """Compares outputs with references.

    `name` is the one the field uses ("BLEU"); a recipe uses the file's ("bleu").
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    @abstractmethod
    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
    ) -> np.ndarray:
        """[N, K] float64: what the value needs to know of each line; adding rows must make sense.

        A metric whose value is a mean over lines returns [N, 2]: the line's score, and 1.
        """

    @abstractmethod
    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., K] sums of statistics to [...] values."""

    @abstractmethod
    def signature(self) -> str:
        """How the score is computed, as key:value pairs between bars."""

    def score(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str],
        sources: Sequence[str] | None = None,
    ) -> Score:
        """The score of a whole set of outputs.

        Args:
            hypotheses: outputs, detokenised, one a line.
            references: what should have come out, in the same order.
            sources: what was read; only few metrics look at them.

        Raises:
            DataError: unequal counts, no lines, or references that are all empty.

        Example:
            >>> from weft.metrics.accuracy import Accuracy
            >>> Accuracy().score(["yes", "no"], ["yes", "yes"]).value
            0.5
        """
        check_lines(hypotheses, references, sources)
        statistics = self.statistics(hypotheses, references, sources)
        return self.summary(statistics)

    def summary(self, statistics: np.ndarray) -> Score:
        """The score of lines whose statistics [N, K] are known."""
        value = float(self.value(statistics.sum(0)))
        return Score(self.name, value, self.signature(), len(statistics), self.higher_is_better)


def check_lines(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> None:
    """Refuse sets that cannot be compared line by line.

    A single empty line is an answer like any other; only a set without any reference text is refused.

    Raises:
        DataError: with the counts.
    """
    counts = f"got {len(hypotheses):,} hypotheses and {len(references):,} references"
    if len(hypotheses) != len(references):
        raise DataError(f"expected one reference for each hypothesis, {counts}")
    if not hypotheses:
        raise DataError(f"expected at least one of each, {counts}")
    if not any(line.strip() for line in references):
        raise DataError(f"expected references with text, {counts}, every reference empty")
    if sources is not None and len(sources) != len(references):
        raise DataError(
            "expected one source for each reference, "
            f"got {len(sources):,} sources and {len(references):,} references"
        )
