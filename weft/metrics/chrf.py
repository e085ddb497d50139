"""chrF: the F-score of character n-grams, fairer than BLEU to languages with rich morphology.

The counts are sacrebleu's; only the final formula is written here, over arrays. Read next: meteor.py.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import sacrebleu

from weft.metrics.metric import SacrebleuMetric


class Chrf(SacrebleuMetric):
    """Corpus chrF, 0..100.

    F = (1 + β²) P R / (β² P + R), where P and R are the mean precision and recall over the orders that occur;
    β = 2.

    Args:
        word_order: also count word n-grams up to this length; 2 makes it chrF++.
        lowercase: ignore case.

    Source: Popović 2015, 2017.

    Example:
        >>> Chrf().score(["the cat"], ["the cat"]).value
        100.0
    """

    name = "chrF2"

    def __init__(self, *, word_order: int = 0, lowercase: bool = False) -> None:
        self._counter = sacrebleu.CHRF(word_order=word_order, lowercase=lowercase)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 3 x orders] to [...]: of each order, n-grams of the output, of the reference, and shared."""
        ours, theirs, common = totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
        counted = (ours > 0) & (theirs > 0)
        orders = np.maximum(counted.sum(-1), 1)
        precision = (counted * common / np.maximum(ours, 1)).sum(-1) / orders
        recall = (counted * common / np.maximum(theirs, 1)).sum(-1) / orders
        weight = self._counter.beta**2
        bottom = weight * precision + recall
        return 100 * (1 + weight) * precision * recall / np.where(bottom > 0, bottom, 1)


def least_risk(texts: Sequence[str], count: int = 1) -> list[int]:
    """Minimum Bayes risk decoding: the places of the `count` different texts most like all, best first.

    The most probable text of a model may be one that it hardly ever writes. A text drawn at random is judged
    by its mean utility, here chrF, with every text drawn as the reference.

    Source: Eikema and Aziz 2020, "Is MAP Decoding All You Need?"; 2022, "Sampling-Based Approximations to
    Minimum Bayes Risk Decoding for Neural Machine Translation", section 3.
    """
    drawn = Counter(texts)
    different = list(drawn)
    pairs = [(text, reference) for text in different for reference in different]
    chrf = Chrf()
    utility = chrf.value(chrf.statistics(*map(list, zip(*pairs, strict=True))))
    expected = utility.reshape(len(different), -1) @ np.array(list(drawn.values()))
    return [texts.index(different[n]) for n in np.argsort(-expected, kind="stable")[:count]]
