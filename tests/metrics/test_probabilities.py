"""Brier score, calibration error, ROC area, average precision: by loops, and against scikit-learn."""

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.calibration import best_threshold, f1_from, fitted, heated, kept
from weft.metrics.intervals import compare, compare_statistics, with_interval
from weft.metrics.probabilities import Auroc, AveragePrecision, Brier, Ece
from weft.metrics.scored import of_rows

CHANCE = np.random.default_rng(3)
TRUE = CHANCE.integers(0, 3, 67)
PROBS = CHANCE.dirichlet((1, 1, 1), 67) * 0.6 + 0.4 * np.eye(3)[TRUE] * CHANCE.random((67, 1))
PROBS = np.round(PROBS / PROBS.sum(1, keepdims=True), 2)  # rounded, so that some are equal
SEVERAL = CHANCE.random((67, 3)) < 0.4


def area(score: np.ndarray, true: np.ndarray) -> float:
    pairs = [(a > b) + 0.5 * (a == b) for a in score[true] for b in score[~true]]
    return float(np.mean(pairs))


def precision(score: np.ndarray, true: np.ndarray) -> float:
    """Sum of (R_n - R_(n-1)) P_n over thresholds."""
    total, before = 0.0, 0.0
    for least in sorted(set(score), reverse=True):
        chosen = score >= least
        recall = true[chosen].sum() / true.sum()
        total, before = total + (recall - before) * true[chosen].mean(), recall
    return total


def test_ranks_are_those_of_loops_over_pairs_and_thresholds() -> None:
    for true in (np.eye(3, dtype=bool)[TRUE], SEVERAL):
        given = TRUE if true is not SEVERAL else SEVERAL
        for metric, loop in ((Auroc(), area), (AveragePrecision(), precision)):
            wanted = np.mean([loop(PROBS[:, n], true[:, n]) for n in range(3)])
            assert metric(PROBS, given).value == pytest.approx(wanted, abs=1e-12)
    two = (PROBS[:, 1], (TRUE == 1).astype(int))  # the rarer class, which here is class 1
    assert Auroc()(*two).value == pytest.approx(area(two[0], two[1] == 1))
    assert AveragePrecision()(*two).value == pytest.approx(precision(two[0], two[1] == 1))


def test_squared_and_calibration_errors_are_those_of_loops() -> None:
    onehot = np.eye(3)[TRUE]
    assert Brier()(PROBS, TRUE).value == pytest.approx(
        np.mean([((p - y) ** 2).sum() for p, y in zip(PROBS, onehot, strict=True)])
    )
    assert Brier()(PROBS[:, 1], TRUE == 1).value == pytest.approx(np.mean((PROBS[:, 1] - onehot[:, 1]) ** 2))
    sure, right, wanted = PROBS.max(1), PROBS.argmax(1) == TRUE, 0.0
    for number in range(10):
        inside = (sure >= number / 10) & ((sure < (number + 1) / 10) | (number == 9))
        if inside.any():
            wanted += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert Ece()(PROBS, TRUE).value == pytest.approx(wanted)


def test_all_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is not installed: pip install --group metrics-tests"
    )
    onehot = np.eye(3, dtype=int)[TRUE]
    assert Auroc()(PROBS, SEVERAL).value == pytest.approx(metrics.roc_auc_score(SEVERAL, PROBS))
    assert Auroc()(PROBS, TRUE).value == pytest.approx(metrics.roc_auc_score(onehot, PROBS))
    for true in (onehot, SEVERAL):
        given = TRUE if true is onehot else SEVERAL
        known = metrics.average_precision_score(true, PROBS)
        assert AveragePrecision()(PROBS, given).value == pytest.approx(known)
    one = PROBS[:, 1]
    assert Brier()(one, TRUE == 1).value == pytest.approx(metrics.brier_score_loss(TRUE == 1, one))
    for true in (TRUE == 1, TRUE != 1, (TRUE == 1).astype(float)):  # class 1 is rare or frequent
        known = metrics.average_precision_score(true, one)
        assert AveragePrecision()(one, true).value == pytest.approx(known)
    half = np.arange(66) % 2  # two classes that are as frequent
    known = metrics.average_precision_score(half, one[:66])
    assert AveragePrecision()(np.stack([1 - one, one], 1)[:66], half).value == pytest.approx(known)


def test_pseudo_values_are_derivatives_by_the_weight_of_an_item() -> None:
    # doubling an item's weight a little: measured on copies of the data
    score, true, step = PROBS[:, 1], TRUE == 1, 1000
    for metric, loop in ((Auroc(), area), (AveragePrecision(), precision)):
        values = metric.pseudo_values(score, true)
        assert values.mean() == pytest.approx(loop(score, true))
        for item in (0, 5, 31):
            many = np.repeat(np.arange(67), [step + (n == item) for n in range(67)])
            if loop is area:
                weights = np.bincount(many) / step
                above = (score[true][:, None] > score[~true]) + 0.5 * (score[true][:, None] == score[~true])
                moved = weights[true] @ above @ weights[~true] / (weights[true].sum() * weights[~true].sum())
            else:
                moved = precision(score[many], true[many])
            slope = (moved - loop(score, true)) * step
            assert values[item] - values.mean() == pytest.approx(67 * slope, rel=0.01, abs=0.01), item


def test_a_perfect_order_has_no_interval_of_shares() -> None:
    true = np.arange(30) % 3 == 0
    for metric in (Auroc(), AveragePrecision()):
        found = with_interval(metric, metric.statistics(true * 0.9, true.astype(int)))
        assert found.value == pytest.approx(1) and found.low is None and "wilson" not in found.signature


def test_the_interval_of_the_area_is_about_delongs() -> None:
    score, true = PROBS[:, 1], TRUE == 1
    found = with_interval(Auroc(), Auroc().statistics(score, true.astype(int)))
    above = (score[true][:, None] > score[~true]) + 0.5 * (score[true][:, None] == score[~true])
    error = (above.mean(1).var(ddof=1) / true.sum() + above.mean(0).var(ddof=1) / (~true).sum()) ** 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    other = Auroc().statistics(np.random.default_rng(1).random(67), true.astype(int))
    assert compare_statistics(Auroc(), other, Auroc().statistics(score, true.astype(int))).p_value < 0.05


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"class numbers below 3, got 0 to 3"):
        Brier()(PROBS[:2], [0, 3])
    with pytest.raises(DataError, match=r"got shapes \[67, 3\] and \[67, 2\]"):
        Auroc()(PROBS, SEVERAL[:, :2])
    with pytest.raises(DataError, match="expected rows of as many numbers each"):
        Ece()([[0.5, 0.5], [1.0]], [0, 1])


def test_numbers_that_are_no_probabilities_are_refused() -> None:
    for metric in (Auroc(), AveragePrecision(), Brier(), Ece()):
        with pytest.raises(DataError, match=r"expected finite numbers, got \[nan, nan\] at 1"):
            metric([0.1, np.nan], [0, 1])
    for metric in (Brier(), Ece()):
        with pytest.raises(
            DataError, match=f"{metric.key}: expected probabilities from 0 to 1, got -0.5 to 1.5"
        ):
            metric([1.5, 0.2], [1, 0])
    assert Auroc()([-3.0, 7.0], [0, 1]).value == 1  # of scores only the order counts


def test_the_area_of_one_class_is_not_defined_and_proves_nothing() -> None:
    chance = np.random.default_rng(1)
    found = compare(Auroc(), chance.random(20), chance.random(20), np.zeros(20, int))
    assert np.isnan(found.difference) and (found.p_value, found.low) == (1.0, -np.inf)
    rows = Auroc().statistics(chance.random(20), np.zeros(20, int))
    assert of_rows(Auroc(), rows, baselines={"always": np.nan}).lines() == [
        "  AUROC: not defined for these items, such as a single class or no values"
    ]


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
