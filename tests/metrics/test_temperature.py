"""The temperature of probabilities, and thresholds for answers."""

import numpy as np
import pytest

from weft.metrics.calibration import best_threshold, f1_from, fitted, heated, kept


def loss(logits: np.ndarray, targets: np.ndarray, temperature: float) -> float:
    scaled = logits / temperature
    return float((np.log(np.exp(scaled).sum(1)) - scaled[np.arange(len(scaled)), targets]).mean())


def test_the_fitted_temperature_has_the_lowest_loss() -> None:
    chance = np.random.default_rng(3)
    logits = chance.normal(size=(211, 5)) * 4
    targets = np.array([chance.choice(5, p=np.exp(row / 3) / np.exp(row / 3).sum()) for row in logits])
    found = fitted(logits, targets)
    best = min(np.geomspace(0.5, 20, 3001), key=lambda one: loss(logits, targets, one))
    assert found == pytest.approx(best, rel=2e-3)
    assert 2 < found < 4.5  # drawn at 3


def test_two_classes_have_the_temperature_of_a_hand_calculation() -> None:
    # p = 0.9 and 7 of 10 right: log(9) / T = log(7 / 3)
    logp = np.log([[0.9, 0.1]] * 10)
    assert fitted(logp, np.array([0] * 7 + [1] * 3)) == pytest.approx(np.log(9) / np.log(7 / 3), rel=1e-9)


def test_heating_back_gives_the_probabilities_before() -> None:
    probs = np.array([[0.7, 0.2, 0.1], [0.01, 0.01, 0.98], [1.0, 0.0, 0.0]])
    logp = np.log(np.maximum(probs, 1e-30))
    back = heated(np.log(np.maximum(heated(logp, 1.7), 1e-300)), 1 / 1.7)
    np.testing.assert_allclose(back, probs, atol=1e-10)


def test_texts_that_are_all_right_or_all_wrong_have_a_temperature_too() -> None:
    logp = np.log([[0.9, 0.1]] * 3)
    assert fitted(logp, np.array([0, 0, 0])) == pytest.approx(0.25)
    assert fitted(logp, np.array([1, 1, 1])) == pytest.approx(20)


def test_the_threshold_is_the_best_of_all() -> None:
    chance = np.random.default_rng(5)
    true = chance.random(97) < 0.3
    probs = np.round(np.clip(chance.normal(0.3 + 0.25 * true, 0.2), 0, 1), 1)  # with ties
    scores = {}
    for value in np.unique(probs):
        answered = probs >= value
        scores[value] = 2 * (answered & true).sum() / (answered.sum() + true.sum())
    found = best_threshold(probs, true)
    assert f1_from(probs, true, found) == pytest.approx(max(scores.values()))
    assert abs(probs - found).min() == pytest.approx(0.05)  # in the middle of two probabilities
    assert best_threshold(np.array([0.3, 0.3]), np.array([True, False])) == 0.3  # all are answered
    close = np.array([np.nextafter(0.3, 1), 0.3])  # no number lies between them
    assert best_threshold(close, np.array([True, False])) == close[0]
    assert f1_from(probs, true, 0.5) == pytest.approx(scores[0.5])


def test_what_is_left_of_the_answers_is_counted() -> None:
    found = kept(np.array([0.5, 0.7, 0.7, 0.95]), np.array([True, False, True, True]), [0.7, 0.99])
    assert (found[0].share, found[0].accuracy) == (0.75, pytest.approx(2 / 3))
    assert found[1].share == 0 and np.isnan(found[1].accuracy)
