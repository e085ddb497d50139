"""BLEU-1 to BLEU-4 of captions against several references, as COCO's evaluation has them.

Translations are scored by bleu.py, which is sacrebleu's. Read next: rouge.py, cider.py.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.metrics.captions import SIGNATURE, grams, words
from weft.metrics.metric import Score

ORDER = 4


def bleu_n(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
    """BLEU-N = BP (p_1 ... p_N)^(1/N) for N = 1 .. 4, 0..100, over the whole set.

    p_n counts n-grams of a hypothesis at most as often as one of its references has them; BP takes the
    reference whose length is nearest, of two the shorter. An order without a match makes BLEU-N zero.

    Args:
        hypotheses: [N] captions.
        references: [N] lists of one or more.

    Source: Papineni et al. 2002, section 2.

    Example:
        >>> [round(one.value, 1) for one in bleu_n(["a red cat"], [["a red dog", "the red cat"]])]
        [100.0, 100.0, 0.0, 0.0]
    """
    matched, total = np.zeros(ORDER), np.zeros(ORDER)
    ours = theirs = 0
    for hypothesis, answers in zip(hypotheses, references, strict=True):
        said, known = words(hypothesis), [words(answer) for answer in answers]
        ours += len(said)
        theirs += min((len(one) for one in known), key=lambda length: (abs(length - len(said)), length))
        for n in range(1, ORDER + 1):
            most: Counter[tuple[str, ...]] = Counter()
            for one in known:
                most |= grams(one, n)
            counted = grams(said, n)
            matched[n - 1] += (counted & most).total()
            total[n - 1] += counted.total()
    brevity = float(np.exp(min(0.0, 1 - theirs / max(1, ours))))
    share = matched / np.maximum(total, 1)
    scores = []
    for n in range(1, ORDER + 1):
        mean = np.exp(np.log(share[:n]).mean()) if (share[:n] > 0).all() else 0.0
        scores.append(
            Score(
                f"BLEU-{n}",
                float(100 * brevity * mean),
                f"{SIGNATURE}|len:closest|smooth:none",
                len(hypotheses),
            )
        )
    return scores
