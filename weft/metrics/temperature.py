"""One number that makes a classifier's probabilities honest: the temperature of its softmax.

Read next: calibration.py, the error that it reduces.
"""

import numpy as np

COLDEST, HOTTEST = 0.25, 20.0
"""The ends of the search: a few texts that are all right would ask for certainty."""

STEPS = 60  # bisections, which end below the precision of float64


def fitted(logp: np.ndarray, targets: np.ndarray) -> float:
    """The temperature T for which softmax(logp / T) gives the targets the highest probability.

    The derivative of the loss by b = 1 / T is sum_n (E_b[logp_n] - logp_n[target]), which grows with b, so
    its zero is found by bisection.

    Args:
        logp: [N, C] log-probabilities or logits.
        targets: [N] classes.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.

    Example:
        >>> logp = np.log([[0.9, 0.1]] * 4)
        >>> round(fitted(logp, np.array([0, 0, 0, 1])), 2)  # 3 of 4 are right: log 9 / log 3
        2.0
    """
    logp = logp.astype(np.float64)
    low, high = np.log(1 / HOTTEST), np.log(1 / COLDEST)
    own = logp[np.arange(len(logp)), targets].sum()
    for _ in range(STEPS):
        middle = (low + high) / 2
        probs = heated(logp, np.exp(-middle))
        if (probs * np.where(probs > 0, logp, 0.0)).sum() > own:
            high = middle
        else:
            low = middle
    return float(np.exp(-(low + high) / 2))


def heated(logp: np.ndarray, temperature: float) -> np.ndarray:
    """softmax(logp / T): probabilities [N, C] in float64.

    Example:
        >>> heated(np.log([[0.8, 0.2]]), 2.0).round(4).tolist()
        [[0.6667, 0.3333]]
    """
    scaled = logp.astype(np.float64) / temperature
    raised = np.exp(scaled - scaled.max(-1, keepdims=True))
    probs: np.ndarray = raised / raised.sum(-1, keepdims=True)
    return probs
