"""The mean over several trainings has Student's interval, wider where they share their data."""

import pytest

from weft.metrics.trainings import mean_of, quantile


def test_three_trainings_have_the_interval_of_a_table() -> None:
    found = mean_of([0.80, 0.86, 0.83])
    # mean 0.83, standard deviation 0.03, t(2) = 4.303, 4.303 * 0.03 / sqrt(3) = 0.074530
    assert (found.value, found.repeats) == (pytest.approx(0.83), 3)
    assert (found.low, found.high) == pytest.approx((0.83 - 0.0745301, 0.83 + 0.0745301), abs=1e-6)


def test_folds_of_the_same_data_have_a_wider_interval() -> None:
    # 5 folds test 1 example for 4 that are trained on: s² (1/5 + 1/4); s = 0.0158114, t(4) = 2.776
    found = mean_of([0.80, 0.81, 0.82, 0.83, 0.84], overlap=1 / 4)
    assert found.high - found.value == pytest.approx(2.776 * 0.0158114 * 0.45**0.5, abs=1e-6)


def test_one_training_has_no_interval() -> None:
    assert str(mean_of([0.5])) == "0.5"


def test_an_interval_of_all_possible_values_is_told_in_words() -> None:
    # two trainings: s = 0.1414, t(1) = 12.706, so 0.8 ± 1.27, cut at 0 and 1
    found = mean_of([0.7, 0.9], name="accuracy")
    assert not found.known and str(found) == "0.8 (2 trainings are too few for an interval)"
    assert str(mean_of([0.7, 0.9], name="loss")) == "0.8 [-0.4706, 2.071]"


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.706), (9, 2.262), (10, 2.228), (20, 2.086), (49, 2.010)]
)
def test_quantiles_are_those_of_the_tables(freedom: int, value: float) -> None:
    assert quantile(freedom) == pytest.approx(value, abs=6e-4)
