"""Perplexity: the number of equally likely next tokens that would give the same loss.

It is not a Metric, because it is computed from the loss instead of outputs. It is comparable only between
models with the same vocabulary. Read next: ../nn/heads/head.py, where a loss is a sum and a count.
"""

import math

from weft.errors import DataError
from weft.metrics.metric import MetricScore


def perplexity(total: float, count: int, *, unit: str = "target token with </s>") -> MetricScore:
    """exp(total / count).

    Args:
        total: summed negative log-likelihood in nats, without label smoothing.
        count: number of tokens.
        unit: what was counted, for the signature.

    Raises:
        DataError: count is 0.

    Example:
        >>> round(perplexity(4 * math.log(8), 4).value, 9)
        8.0
    """
    if count < 1:
        raise DataError(f"perplexity: expected at least 1 token, got {count}")
    mean = total / count
    value = math.exp(mean) if mean < 700 else math.inf  # e^709 is the largest float64
    return MetricScore(
        "perplexity", value, f"unit:{unit}|log:e|smoothing:none", count, higher_is_better=False
    )
