"""Scores of probabilities of a text: perplexity and bits. Outputs are nats [N], references tokens [N].

Read next: means.py; ../ngram, the baselines of a language model.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from weft.metrics.metric import Metric, MetricScore
from weft.metrics.numbers import quotient


class NatsMetric(Metric):
    """A score of the nats that texts cost."""

    reads = ("nats",)
    higher_is_better = False

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        """[N, 2]: nats and tokens."""
        return np.stack([np.asarray(one, np.float64) for one in (hypotheses, references)], 1)

    def summary(self, statistics: np.ndarray) -> MetricScore:
        """The size is the number of tokens."""
        return super().summary(statistics)._replace(size=int(statistics[:, 1].sum()))

    @abstractmethod
    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""

    def signature(self) -> str:
        return "unit:token"


class Perplexity(NatsMetric):
    """e to the mean nats of a token.

    Example:
        >>> round(Perplexity()([0.6931, 1.3863], [1, 2]).value, 3)
        2.0
    """

    name = "perplexity"

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(quotient(totals[..., 0], totals[..., 1]), 700.0))  # type: ignore[no-any-return]


class Bits(NatsMetric):
    """Mean bits of a token: nats / ln 2.

    Example:
        >>> round(Bits()([0.6931, 1.3863], [1, 2]).value, 3)
        1.0
    """

    name = "bits a token"

    def value(self, totals: np.ndarray) -> np.ndarray:
        return quotient(totals[..., 0], totals[..., 1]) / np.log(2)  # type: ignore[no-any-return]
