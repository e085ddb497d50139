"""BLEU-1 to BLEU-4 of captions against several references, as in COCO's evaluation.

For translations use bleu.py, which is sacrebleu's BLEU. Read next: rouge.py, cider.py.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.metrics.captions import SIGNATURE, grams, words
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, of_rows

ORDER = 4


class _BleuN(Metric):
    """Statistics [N, 2 + 2 ORDER]: words of hypothesis and nearest reference, matches, n-grams."""

    def __init__(self, order: int) -> None:
        self.name, self.order = f"BLEU-{order}", order  # type: ignore[misc]

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """Statistics against one reference per line."""
        return _counts(hypotheses, [[one] for one in references])

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2 + 2 ORDER] to [...]."""
        ours, theirs = totals[..., 0], totals[..., 1]
        matched, total = np.split(totals[..., 2:], 2, axis=-1)
        brevity = np.exp(np.minimum(0.0, 1 - theirs / np.maximum(1, ours)))
        share = (matched / np.maximum(total, 1))[..., : self.order]
        mean = np.exp(np.log(np.maximum(share, 1e-300)).mean(-1))
        found: np.ndarray = np.where((share > 0).all(-1), 100 * brevity * mean, 0.0)
        return found

    def signature(self) -> str:
        return f"{SIGNATURE}|len:closest|smooth:none"


def bleu_n(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[ScoreWithBaselines]:
    """BLEU-N = BP (p_1 ... p_N)^(1/N) for N = 1 .. 4, 0..100, over the whole set, with 95 % intervals.

    p_n clips each n-gram's count to its largest count in one reference. BP uses the reference whose length is
    nearest; ties go to the shorter one. An order without a match makes BLEU-N zero.

    Args:
        hypotheses: [N] captions.
        references: [N] lists of one or more.

    Source: Papineni et al. 2002, section 2.

    Example:
        >>> [round(one.value, 1) for one in bleu_n(["a red cat"], [["a red dog", "the red cat"]])]
        [100.0, 100.0, 0.0, 0.0]
    """
    rows = _counts(hypotheses, references)
    return [of_rows(_BleuN(n), rows, baselines={}) for n in range(1, ORDER + 1)]


def _counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    rows = np.zeros((len(hypotheses), 2 + 2 * ORDER))
    for row, hypothesis, answers in zip(rows, hypotheses, references, strict=True):
        output, known = words(hypothesis), [words(answer) for answer in answers]
        row[0] = len(output)
        row[1] = min((len(one) for one in known), key=lambda length: (abs(length - len(output)), length))
        for n in range(1, ORDER + 1):
            most: Counter[tuple[str, ...]] = Counter()
            for one in known:
                most |= grams(one, n)
            counted = grams(output, n)
            row[1 + n] = (counted & most).total()
            row[1 + ORDER + n] = counted.total()
    return rows
