"""The contract of a metric: statistics per line, which are summed and turned into one value.

A metric is one file in this folder: a class with `statistics`, `value` and `signature`. Confidence
intervals (bootstrap.py), significance tests, scores by sentence length (bylength.py) and the law tests then
work without more code, because they only sum rows of statistics.
Read next: bleu.py, the best known one; accuracy.py, the shortest one.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from weft.errors import DataError
from weft.rooms import guide, wrong_result
from weft.wording import plural


class MetricScore(NamedTuple):
    """A value with everything needed to reproduce it.

    Fields:
        value: on the metric's usual scale, BLEU 0..100, accuracy 0..1.
        signature: how it was computed, in enough detail to compute it again.
        size: number of items scored: lines, or tokens for perplexity.
        low, high: the ends of the confidence interval; None without one.

    Example:
        >>> from weft.metrics import Accuracy
        >>> score = Accuracy().score(["a", "b"], ["a", "c"])
        >>> score.value, score.size
        (0.5, 2)
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
        """Number of decimals to show."""
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

    `name` is the usual name ("BLEU"); a recipe and `--metric` use the file's name ("bleu"), or the path of
    a plugin's metric ("mine.metrics.Distinct"). Settings are keyword-only arguments of the constructor.

    Example:
        >>> import weft.metrics
        >>> bleu: Metric = weft.metrics.Bleu()
        >>> bleu.name, bleu.higher_is_better
        ('BLEU', True)
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    @property
    def key(self) -> str:
        """The name in recipes: the file's name, or for a plugin the lower-cased class name."""
        room, _, file = type(self).__module__.rpartition(".")
        return file if room == "weft.metrics" else type(self).__name__.lower()

    def for_references(self, references: Sequence[str]) -> Self:
        """This metric, with everything chosen that depends on the references, such as how words are cut.

        All outputs that are compared must be scored with the metric for their common references.

        Example:
            >>> import weft.metrics
            >>> "tok:zh" in weft.metrics.Bleu().for_references(["我喜欢喝茶。"]).signature()
            True
        """
        return self

    def note(self, references: Sequence[str]) -> str:
        """What a reader must know about the score against these references; empty if there is nothing."""
        return ""

    @abstractmethod
    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
    ) -> np.ndarray:
        """[N, K] float64: statistics of each line, such that `value` only needs their sum.

        A metric whose value is a mean over lines returns [N, 2]: the line's score, and 1.
        """

    def rows(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """`statistics`, checked together with what `value` and `signature` return.

        Raises:
            DataError: not one row for each line.
            ConfigError: `value` returns no number, or `signature` no text.
        """
        found = np.asarray(self.statistics(hypotheses, references, sources))
        if found.ndim != 2 or len(found) != len(hypotheses):
            raise DataError(
                f"{type(self).__name__}.statistics: expected one row of numbers for each of "
                f"{plural(len(hypotheses), 'line')}, got an array of shape {list(found.shape)}; "
                f"see {guide(type(self))}"
            )
        value, signature = self.value(found.sum(0)), self.signature()
        if not isinstance(value, int | float | np.number | np.ndarray) or np.ndim(value):
            raise wrong_result(self, "value", "a number for a row of sums", f"{value!r}")
        if not isinstance(signature, str):
            raise wrong_result(self, "signature", "text", f"{signature!r}")
        return found

    @abstractmethod
    def value(self, totals: np.ndarray) -> np.ndarray:
        """Turn sums of statistics [..., K] into values [...]."""

    @abstractmethod
    def signature(self) -> str:
        """How the score is computed, as key:value pairs between bars."""

    def score(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str],
        sources: Sequence[str] | None = None,
    ) -> MetricScore:
        """The score of a whole set of outputs; warns if the metric has a `note` on the references.

        Args:
            hypotheses: detokenised outputs, one per line.
            references: the expected outputs, in the same order.
            sources: the inputs; only a few metrics use them.

        Raises:
            DataError: different numbers of lines, no lines, or only empty references.

        Example:
            >>> from weft.metrics.accuracy import Accuracy
            >>> Accuracy().score(["yes", "no"], ["yes", "yes"]).value
            0.5
        """
        check_lines(hypotheses, references, sources)
        if note := self.note(references):
            warnings.warn(note, stacklevel=2)
        suited = self.for_references(references)
        return suited.summary(suited.rows(hypotheses, references, sources))

    def summary(self, statistics: np.ndarray) -> MetricScore:
        """The score of lines from their statistics [N, K]."""
        value = float(self.value(statistics.sum(0)))
        return MetricScore(self.name, value, self.signature(), len(statistics), self.higher_is_better)


def check_lines(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> None:
    """Check that hypotheses, references and sources can be compared line by line.

    Empty lines are allowed, but not all references may be empty.

    Raises:
        DataError: with the counts.
    """
    counts = f"got {plural(len(hypotheses), 'hypothesis')} and {plural(len(references), 'reference')}"
    if len(hypotheses) != len(references):
        raise DataError(f"expected one reference for each hypothesis, {counts}")
    if not hypotheses:
        raise DataError(f"expected at least one of each, {counts}")
    if not any(line.strip() for line in references):
        raise DataError(f"expected references with text, {counts}, every reference empty")
    if sources is not None and len(sources) != len(references):
        raise DataError(
            "expected one source for each reference, "
            f"got {plural(len(sources), 'source')} and {plural(len(references), 'reference')}"
        )
