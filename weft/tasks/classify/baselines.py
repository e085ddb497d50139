"""What a classifier must beat: the most frequent class, and naive Bayes over tokens and pairs of tokens.

Read next: ../../metrics/naive_bayes.py.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.metrics.naive_bayes import NaiveBayes, grams
from weft.text.vocabulary import Vocabulary

CHOSEN_ON = 2000
"""Number of training texts that choose a tokenisation; each is left out of the counts that judge it."""


def baselines(
    vocabulary: Vocabulary, texts: Sequence[str], train: tuple[Sequence[str], Sequence[str]]
) -> dict[str, list[str]]:
    """The answer of each baseline for each text.

    Naive Bayes reads the tokens of the model's own vocabulary, words, or words between spaces: whichever
    is right most often on training texts that are left out of its counts.

    Args:
        vocabulary: the model's.
        texts: to answer.
        train: texts and classes to count.
    """
    most = Counter(train[1]).most_common(1)[0][0]
    found = {"most frequent class": [most] * len(texts)}
    ways = {kind: (one.encode_batch(train[0]), one) for kind, one in _ways(vocabulary, train[0]).items()}
    for longest, name in ((1, "tokens"), (2, "tokens and pairs")):
        best: tuple[float, str, NaiveBayes, Vocabulary] | None = None
        for kind, (rows, way) in ways.items():
            bags = [grams(row, longest) for row in rows]
            bayes = NaiveBayes(bags, train[1])
            right = _left_out(bayes, bags, train[1])
            if best is None or right > best[0]:
                best = right, kind, bayes, way
        assert best is not None
        _, kind, bayes, way = best
        answers = bayes.predict(grams(row, longest) for row in way.encode_batch(texts))
        found[f"naive Bayes, {name} ({kind})"] = answers
    return found


def _ways(own: Vocabulary, texts: Sequence[str]) -> dict[str, Vocabulary]:
    """Vocabularies by the way they cut a text, all with the letter case of the model."""
    found = {own.kind: own}
    for kind in ("word", "space"):
        whole = Vocabulary.train(texts, kind=kind, size=None, form=own.form, lowercase=own.lowercase)
        if kind not in found or len(whole) > len(own):
            found[kind] = whole
    return found


def _left_out(bayes: NaiveBayes, bags: Sequence[Sequence[object]], labels: Sequence[str]) -> float:
    """The share of training texts (or of a sample of them) that are right when left out of the counts."""
    count = min(CHOSEN_ON, len(bags))
    chosen = np.random.default_rng(1).permutation(len(bags))[:count]
    return sum(bayes.left_out(bags[n], labels[n]) == labels[n] for n in chosen) / count
