"""The contract of a metric: statistics per item, which are summed and turned into one value.

A metric is one file in this folder: a class with `statistics` and `signature`, `value` unless it is a mean,
and `reads` if it reads anything but texts. Confidence intervals (intervals.py), significance tests, scores by
sentence length (bylength.py), `weft evaluate --metric` and the law tests then work without more code, because
they only sum rows of statistics. Read next: bleu.py, the best known one; accuracy.py, the shortest one.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from weft.errors import DataError
from weft.rooms import guide, name_of, wrong_result
from weft.wording import kind_of, plural

ItemKind = Literal["texts", "labels", "tags", "probabilities", "numbers", "forecasts", "nats"]
"""What outputs and references are.

texts: lines. labels: for each item a class, a list of them (the tags of a sentence) or a set. tags: the tags
of a sentence in a line. probabilities: outputs [N, C], references [N] class numbers or [N, C] bool. numbers:
arrays [N] or [N, H], or `ForecastWindows` (numbers.py). forecasts: `ForecastWindows` with naive errors, for
MASE and RMSSE. nats: outputs [N] nats, references [N] tokens.
"""

ROUNDING = 1e-12
"""A smaller share of a value is an error of rounding."""


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
    `reads` names what it reads, the preferred kind first.

    Example:
        >>> import weft.metrics
        >>> bleu: Metric = weft.metrics.Bleu()
        >>> bleu.name, bleu.higher_is_better, bleu.reads
        ('BLEU', True, ('texts',))
        >>> round(bleu(["a cat sat here"], ["a cat sat here"]).value, 2)
        100.0
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True
    reads: ClassVar[tuple[ItemKind, ...]] = ("texts",)
    graded: ClassVar[bool] = False
    """Whether an item may be partly right, so that a mean of zeros and ones is no share of right items."""
    perfect: ClassVar[float | None] = None
    """The value that no outputs can exceed, if outputs reach it."""

    @property
    def key(self) -> str:
        """The name in recipes: that of its file or class, or for a plugin the lower-cased class name."""
        kind = type(self)
        return name_of(kind) if kind.__module__.startswith("weft.metrics.") else kind.__name__.lower()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.signature()}>"

    def fitted(self, references: Any, *outputs: Any) -> Self:
        """This metric with what it takes from the data: the classes, or how words are cut. Most take nothing.

        All outputs that are compared must be scored with one fitted metric.

        Args:
            references: [N] of all items.
            outputs: [N] of each system that will be compared.

        Example:
            >>> import weft.metrics
            >>> "tok:zh" in weft.metrics.Bleu().fitted(["我喜欢喝茶。"]).signature()
            True
        """
        return self

    def note(self, references: Any) -> str:
        """What a reader must know about the score against these references; empty if there is nothing."""
        return ""

    @abstractmethod
    def statistics(self, hypotheses: Any, references: Any, sources: Sequence[str] | None) -> np.ndarray:
        """[N, K] float64: statistics of each item, such that `value` only needs their sum.

        A metric whose value is a mean over items returns [N, 2]: the item's score, and 1.
        """

    def rows(self, hypotheses: Any, references: Any, sources: Sequence[str] | None = None) -> np.ndarray:
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

    def value(self, totals: np.ndarray) -> np.ndarray:
        """Turn sums of statistics [..., K] into values [...]; by default the first over the second."""
        found: np.ndarray = totals[..., 0] / np.maximum(totals[..., 1], 1e-300)
        return found

    @abstractmethod
    def signature(self) -> str:
        """How the score is computed, as key:value pairs between bars."""

    def score(self, hypotheses: Any, references: Any, sources: Sequence[str] | None = None) -> MetricScore:
        """The score of a whole set of outputs; calling the metric does the same.

        Warns if the metric has a `note` on the references.

        Args:
            hypotheses: [N] outputs, of a kind that `reads` names: detokenised lines, classes, numbers.
            references: [N] the expected outputs, in the same order.
            sources: [N] the inputs; only a few metrics use them.

        Raises:
            DataError: different numbers of items, no items, only empty references, or items of another kind.

        Example:
            >>> from weft.metrics.accuracy import Accuracy
            >>> Accuracy().score(["yes", "no"], ["yes", "yes"]).value
            0.5
        """
        check_items(hypotheses, references, sources, reads=self.reads)
        if note := self.note(references):
            warnings.warn(note, stacklevel=2)
        metric = self.fitted(references, hypotheses)
        return metric.summary(metric.rows(hypotheses, references, sources))

    __call__ = score

    def summary(self, statistics: np.ndarray) -> MetricScore:
        """The score of lines from their statistics [N, K]."""
        value = float(self.value(statistics.sum(0)))
        return MetricScore(self.name, value, self.signature(), len(statistics), self.higher_is_better)


def check_items(
    hypotheses: Any,
    references: Any,
    sources: Sequence[str] | None = None,
    *,
    reads: Sequence[ItemKind] = ("texts",),
) -> None:
    """Check that items can be compared one by one; empty lines are allowed, but not all references empty."""
    check_each("hypotheses", hypotheses, reads)
    check_each("references", references, reads)
    if sources is not None:
        check_each("sources", sources)
    counts = f"got {plural(len(hypotheses), 'hypothesis')} and {plural(len(references), 'reference')}"
    if len(hypotheses) != len(references):
        raise DataError(f"expected one reference for each hypothesis, {counts}")
    if not len(hypotheses):
        raise DataError(f"expected at least one of each, {counts}")
    if _listed(references) and not any(not isinstance(one, str) or one.strip() for one in references):
        raise DataError(f"expected references with text, {counts}, every reference empty")
    if sources is not None and len(sources) != len(references):
        raise DataError(
            "expected one source for each reference, "
            f"got {plural(len(sources), 'source')} and {plural(len(references), 'reference')}"
        )


def check_each(name: str, items: Any, reads: Sequence[ItemKind] = ("texts",)) -> None:
    """Check that items are a list, and each of them of a kind that a metric reads."""
    if isinstance(items, str | bytes):
        raise DataError(f"{name}: expected a list of texts, got one text; put it in a list: [text]")
    if not hasattr(items, "__len__") or isinstance(items, Mapping | Set):
        raise DataError(f"{name}: expected a list, got {'None' if items is None else kind_of(items)}")
    numbers = not set(reads) & {"texts", "tags", "labels"}
    if numbers and not _listed(items):
        return
    for place, one in enumerate(items):
        if one is None or not _fits(one, numbers=numbers, several="labels" in reads):
            wanted = "a number" if numbers else "a class as text" if "labels" in reads else "a text"
            found = "None" if one is None else kind_of(one)
            raise DataError(f"{name}: expected {wanted} for each item, got {found} at {place}")


def _fits(item: Any, *, numbers: bool, several: bool) -> bool:
    """Whether an item is no text, or a text or, where there may be several, a list or set of texts."""
    if isinstance(item, str) or not several:
        return isinstance(item, str) != numbers
    return isinstance(item, list | tuple | Set) and all(isinstance(part, str) for part in item)


def _listed(items: Any) -> bool:
    return isinstance(items, list | tuple)
