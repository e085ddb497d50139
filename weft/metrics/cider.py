"""CIDEr-D of captions: shared n-grams, weighted by how rare they are in the references."""

from collections import Counter
from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np

from weft.metrics.captions import CaptionWords, grams, words_of
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines

ORDER = 4
SIGMA = 6.0


def cider_d(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, sigma: float = SIGMA
) -> ScoreWithBaselines:
    """CIDEr-D = 10/4 sum_n mean_j e^(-(l_c - l_j)^2 / 2 s^2) min(g_n(c), g_n(j)) g_n(j) / |g_n(c)| |g_n(j)|.

    g_n holds each n-gram's count times ln(I / max(1, images whose references contain it)) for I images. With
    a single image every n-gram occurs in all images, so the score is zero.

    Args:
        hypotheses: [I] captions.
        references: [I] lists of one or more.
        sigma: s, the width of the length penalty.

    Source: Vedantam, Zitnick & Parikh 2015, eq. 4 and section 6. Lengths are counted in bigrams, as in the
        authors' program, not in words.

    Example:
        >>> cider_d(["a red cat", "a blue dog"], [["a red cat"], ["the blue dog"]]).score.size
        2
    """
    words = words_of(hypotheses, references)
    known = [[_counted(answer, words) for answer in answers] for answers in references]
    seen: Counter[tuple[str, ...]] = Counter()
    for answers in known:
        seen.update({gram for answer in answers for orders in answer for gram in orders})
    images = log(max(1, len(known)))

    def weighed(caption: list[Counter[tuple[str, ...]]]) -> list[dict[tuple[str, ...], float]]:
        return [
            {gram: count * (images - log(max(1, seen[gram]))) for gram, count in orders.items()}
            for orders in caption
        ]

    found = []
    for hypothesis, answers in zip(hypotheses, known, strict=True):
        counted = _counted(hypothesis, words)
        ours, total = weighed(counted), 0.0
        for answer in answers:
            apart = counted[1].total() - answer[1].total()
            near = [_cosine(mine, theirs) for mine, theirs in zip(ours, weighed(answer), strict=True)]
            total += sum(near) / ORDER * exp(-(apart**2) / (2 * sigma**2))
        found.append(10 * total / len(answers))
    metric = ratio(
        "CIDEr-D", f"{words.signature}|idf:references|sigma:{sigma:g}", higher_is_better=True, graded=True
    )
    return mean_of(metric, np.array(found), baselines={})


def _counted(caption: str, words: CaptionWords) -> list[Counter[tuple[str, ...]]]:
    return [grams(words.cut(caption), n) for n in range(1, ORDER + 1)]


def _cosine(ours: dict[tuple[str, ...], float], theirs: dict[tuple[str, ...], float]) -> float:
    """Cosine, with the hypothesis's weights clipped to the reference's: repeating a word gains nothing."""
    shared = sum(min(weight, theirs[gram]) * theirs[gram] for gram, weight in ours.items() if gram in theirs)
    norms = sqrt(sum(w * w for w in ours.values())) * sqrt(sum(w * w for w in theirs.values()))
    return shared / norms if norms else 0.0
