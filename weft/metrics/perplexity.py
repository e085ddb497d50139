"""Perplexity: how many equally likely next tokens a model hesitates between.

It is not a Metric: it is read off the loss, not off outputs, and compares only between models that share
a vocabulary. Read next: ../nn/heads/head.py, where a loss is a sum and a count.
"""

import math

from weft.errors import DataError
from weft.metrics.metric import Score


def perplexity(total: float, count: int, *, unit: str = "target token with </s>") -> Score:
    """exp(total / count).

    Args:
        total: the negative log-likelihood of everything, in nats, without label smoothing.
        count: the tokens it was summed over.
        unit: what was counted; it stands in the signature.

    Raises:
        DataError: nothing was counted.

    Example:
        >>> round(perplexity(4 * math.log(8), 4).value, 9)
        8.0
    """
    if count < 1:
        raise DataError(f"perplexity: expected at least 1 token, got {count}")
    mean = total / count
    value = math.exp(mean) if mean < 700 else math.inf  # e^709 is the largest float64
    return Score("perplexity", value, f"unit:{unit}|log:e|smoothing:none", count, higher_is_better=False)
