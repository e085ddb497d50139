"""ROUGE-L of captions: the longest common subsequence of words."""

from collections.abc import Sequence

import numpy as np

from weft.metrics.captions import SIGNATURE, words
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines

BETA = 1.2
"""Weight of recall relative to precision in COCO's evaluation."""


def rouge_l(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, beta: float = BETA
) -> ScoreWithBaselines:
    """Mean over captions of F = (1 + b^2) P R / (R + b^2 P), 0..100.

    P and R are the longest common subsequence's share of hypothesis and reference, each the best over
    the references, as in COCO's evaluation.

    Args:
        hypotheses: [N] captions.
        references: [N] lists of one or more.
        beta: b.

    Source: Lin 2004, eq. 2-4.

    Example:
        >>> round(rouge_l(["police kill the gunman"], [["police killed the gunman"]]).value, 2)
        75.0
    """
    found = []
    for hypothesis, answers in zip(hypotheses, references, strict=True):
        output, known = words(hypothesis), [words(answer) for answer in answers]
        common = [longest_common(output, one) for one in known]
        precision = max(common) / max(1, len(output))
        recall = max(count / max(1, len(one)) for count, one in zip(common, known, strict=True))
        below = recall + beta**2 * precision
        found.append((1 + beta**2) * precision * recall / below if below else 0.0)
    metric = ratio("ROUGE-L", f"{SIGNATURE}|beta:{beta:g}", higher_is_better=True)
    return mean_of(metric, 100 * np.array(found), baselines={})


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, against in enumerate(other, 1):
            before, row[at] = row[at], before + 1 if word == against else max(row[at], row[at - 1])
    return row[-1]
