"""A threshold is chosen on some texts and scored on others, so that its F1 holds for new texts too."""

import numpy as np

from weft.metrics.calibration import f1_from
from weft.tasks.labels.calibration import confidence_of, threshold_of

CLASSES = ["ham", "spam"]


def drawn(chance: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [N, 2] and labels [N] that have nothing to do with each other."""
    spam = chance.random(rows)
    return np.stack([1 - spam, spam], 1), np.where(chance.random(rows) < 0.25, "spam", "ham")


def test_the_f1_that_is_shown_is_that_of_new_texts_and_only_its_own_texts_give_more() -> None:
    chance, shown, own, new = np.random.default_rng(0), [], [], []
    later, truth = drawn(chance, 20_011)
    for _ in range(199):
        valid, labels = drawn(chance, 61)
        threshold = threshold_of(CLASSES, valid, labels)
        assert threshold is not None
        for found, (probs, there) in ((own, (valid, labels)), (shown, drawn(chance, 61))):
            answers = np.where(probs[:, 1] > 0.5, "spam", "ham")
            found.append(confidence_of(probs, answers, there, CLASSES, 1.0, threshold).threshold.f1)
        new.append(f1_from(later[:, CLASSES.index(threshold.name)], truth == threshold.name, threshold.value))
    error = np.std(shown) / len(shown) ** 0.5
    assert abs(np.mean(shown) - np.mean(new)) < 4 * error < 0.05
    assert np.mean(own) > np.mean(new) + 8 * error


def test_the_line_says_where_the_threshold_was_chosen() -> None:
    probs, labels = np.array([[0.7, 0.3], [0.6, 0.4], [0.8, 0.2]]), np.array(["ham", "spam", "ham"])
    answers = np.array(["ham"] * 3)
    threshold = threshold_of(CLASSES, probs, labels)
    given = probs, answers, labels, CLASSES, 1.0
    assert confidence_of(*given).threshold is None  # none is chosen while scoring
    for own, where in ((False, "the validation texts"), (True, "these texts, so an upper bound")):
        assert confidence_of(*given, threshold, own=own).lines(0.5)[-1].strip() == (
            f"F1 of spam with the threshold 0.35, chosen on {where}: 1.0000 (with 0.5: 0.0000)"
        )


def test_only_two_classes_that_both_occur_have_a_threshold() -> None:
    probs = np.array([[0.7, 0.3], [0.6, 0.4]])
    assert threshold_of(CLASSES, probs, np.array(["ham", "ham"])) is None
    assert threshold_of(["a", "b", "c"], np.ones((2, 3)) / 3, np.array(["a", "b"])) is None
