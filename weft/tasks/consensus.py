"""Minimum Bayes risk decoding: of the texts that a model draws, the ones most like all others.

The most probable text of a model may be one that it hardly ever writes. A text drawn at random is judged by
its mean utility, here chrF, with every text drawn as the reference.

Source: Eikema and Aziz 2020, "Is MAP Decoding All You Need?"; 2022, "Sampling-Based Approximations to Minimum
Bayes Risk Decoding for Neural Machine Translation", section 3. Read next: ../search/offered.py, `mbr`.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.metrics.bleu import Chrf


def least_risk(texts: Sequence[str], count: int = 1) -> list[int]:
    """The places of the `count` different texts with the highest expected utility, best first."""
    drawn = Counter(texts)
    different = list(drawn)
    pairs = [(text, reference) for text in different for reference in different]
    chrf = Chrf()
    utility = chrf.value(chrf.statistics(*map(list, zip(*pairs, strict=True))))
    expected = utility.reshape(len(different), -1) @ np.array(list(drawn.values()))
    return [texts.index(different[n]) for n in np.argsort(-expected, kind="stable")[:count]]
