"""Intervals and tests equal hand calculations, enumerations and tables; error rates: test_error_rates.py."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from weft.errors import ConfigError, DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu, SentenceBleu
from weft.metrics.intervals import (
    SEED,
    compare,
    compare_repeated,
    compare_statistics,
    confidence,
    mean_of,
    mean_over_runs,
    mean_with_interval,
    student_quantile,
    student_tail,
    values_of,
    wilson,
    with_interval,
)
from weft.metrics.meteor import Meteor
from weft.metrics.metric import MetricScore
from weft.metrics.rouge_n import Rouge
from weft.metrics.scored import ratio
from weft.metrics.tags import TagAccuracy

ERROR = ratio("error", "unit:value", higher_is_better=False)


def right(*items: int) -> np.ndarray:
    return np.array([[float(item), 1.0] for item in items])


@pytest.mark.parametrize("metric", [Accuracy(), Meteor()], ids=["accuracy", "meteor"])
def test_resampled_values_equal_scoring_every_resampled_text_anew(metric, good, references):
    statistics = metric.rows(good[:31], references[:31])
    generator = np.random.default_rng(5)
    wanted = []
    for rows in generator.choice(31, size=(40, 31)):
        wanted.append(metric.score([good[r] for r in rows], [references[r] for r in rows]).value)
    np.testing.assert_allclose(values_of(metric, [statistics], 40, 5)[0], wanted, atol=1e-10)


def test_the_interval_is_efrons_with_hesterbergs_wider_levels():
    # transcribed: z0 from the share below, a from leaving items out, levels of t(n - 1) sqrt(n / (n - 1))
    items = np.random.default_rng(2).exponential(size=13)
    rows, normal = np.stack([items, np.ones(13)], 1), NormalDist()
    drawn = np.sort(values_of(ERROR, [rows], 1000, SEED)[0])
    z0 = normal.inv_cdf(float(np.mean(drawn < items.mean())))
    without = np.array([np.delete(items, n).mean() for n in range(13)])
    away = without.mean() - without
    a = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    wide = 2.178813 * math.sqrt(13 / 12)  # of a table: t(12)
    ends = [normal.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))) for z in (-wide, wide)]
    found = with_interval(ERROR, rows)
    assert (found.low, found.high) == tuple(drawn[int(end * 1000)] for end in ends)
    assert found.signature == "unit:value|bca:1000|seed:12345"


def test_the_same_seed_gives_the_same_interval_and_another_another(good, references):
    first, again = (confidence(Bleu(), good, references, resamples=50) for _ in range(2))
    other = confidence(Bleu(), good, references, resamples=50, seed=2)
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_shares_of_right_items_have_wilsons_interval():
    # 8 of 10: Wilson 1927, (0.8 + 1.9207/10 ± 1.96 sqrt(0.016 + 0.009604)) / 1.38416
    found = with_interval(Accuracy(), right(1, 1, 1, 1, 1, 1, 1, 1, 0, 0))
    assert (found.low, found.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)
    assert found.signature.endswith("|ci:wilson")
    all_right = with_interval(Accuracy(), right(*[1] * 10))
    assert (all_right.value, all_right.high) == (1.0, pytest.approx(1.0))
    assert all_right.low == pytest.approx(0.722467, abs=1e-6)
    percent = ratio("right", "", higher_is_better=True, form="percent")
    assert with_interval(percent, right(*[1] * 10)).low == pytest.approx(72.2467, abs=1e-4)
    assert wilson(0.0, 7)[0] == 0.0


def test_a_root_of_ones_and_zeros_is_no_share():
    found = with_interval(ratio("RMSE", "", higher_is_better=False, form="root"), right(*[1, 0] * 9))
    assert "wilson" not in found.signature and found.low < found.value < found.high


@pytest.mark.parametrize("metric", [Meteor(average="sentences"), Rouge(kind="1"), SentenceBleu()])
def test_a_graded_score_of_zeros_is_no_share(metric):
    found = confidence(metric, ["a"] * 12, ["b"] * 12)
    assert (found.value, found.low) == (0.0, None) and "wilson" not in found.signature


def test_too_few_or_equal_items_have_no_interval(good, references):
    nine = confidence(Bleu(), good[:9], references[:9])
    assert (nine.low, nine.high) == (None, None) and "seed" not in nine.signature
    ten = confidence(Bleu(), good[:10], references[:10])
    assert ten.low < ten.value < ten.high
    alike = TagAccuracy().rows(["A B", "A"] * 9, ["A B", "A"] * 9)
    assert with_interval(TagAccuracy(), alike).low is None


def test_a_system_against_itself_is_no_difference(good, references):
    for metric in (Bleu(), Accuracy()):
        found = compare(metric, good, list(good), references, resamples=50)
        assert (found.difference, found.p_value) == (0, 1.0)
        assert found.low <= 0 <= found.high


@pytest.mark.parametrize(("gained", "lost"), [(5, 0), (6, 1), (3, 3), (0, 1), (7, 2)])
def test_right_and_wrong_answers_are_compared_by_the_exact_sign_test(gained, lost):
    first = right(*[0] * gained, *[1] * lost, *[1, 0] * 20)
    second = right(*[1] * gained, *[0] * lost, *[1, 0] * 20)
    count, least = gained + lost, min(gained, lost)
    wanted = min(1.0, 2 * sum(math.comb(count, k) for k in range(least + 1)) / 2**count)
    assert compare_statistics(Accuracy(), first, second).p_value == pytest.approx(wanted)


def test_p_values_of_a_few_items_equal_a_loop_over_all_exchanges(good, references, damaged):
    first, second = good[:7], damaged(references, seed=9, rate=0.31)[:7]
    rows = [Bleu().rows(lines, references[:7]) for lines in (first, second)]
    found, hits = compare_statistics(Bleu(), *rows), 0
    for swaps in itertools.product([False, True], repeat=7):
        one, other = (
            [pair[swap != side] for pair, swap in zip(zip(*rows, strict=True), swaps, strict=True)]
            for side in (False, True)
        )
        apart = Bleu().value(np.sum(one, 0)) - Bleu().value(np.sum(other, 0))
        hits += abs(apart) >= abs(found.difference) - 1e-9
    assert found.p_value == pytest.approx(hits / 128)
    assert 0 < found.p_value < 1


def test_many_items_are_exchanged_at_random_and_agree_with_the_sign_test():
    # 40 gained, 22 lost: exact two-sided binomial 0.0301
    first, second = right(*[0] * 40, *[1] * 22), right(*[1] * 40, *[0] * 22)
    exact = 2 * sum(math.comb(62, k) for k in range(23)) / 2**62
    assert compare_statistics(Accuracy(), first, second, resamples=5000).p_value == pytest.approx(
        exact, abs=0.008
    )


def test_the_order_of_two_systems_changes_the_sign_alone(good, references, damaged):
    other = damaged(references, seed=9, rate=0.31)
    one, back = compare(Bleu(), good, other, references), compare(Bleu(), other, good, references)
    assert one.p_value == back.p_value and one.difference == -back.difference
    assert (one.low, one.high) == pytest.approx((-back.high, -back.low), abs=0.05)
    assert one.low < one.difference < one.high


def test_a_clearly_better_system_is_significant_with_the_right_sign(good, references):
    result = compare(Bleu(), good, references, references, resamples=99)
    assert result.difference > 0 and result.low > 0
    assert result.p_value == pytest.approx(0.01)


def test_a_difference_of_shares_has_the_interval_of_agresti_and_min():
    # 10 gained, 4 lost of 50: (10.5 - 4.5) / 52 ± 1.96 sqrt(15 - 36 / 52) / 52
    first, second = right(*[0] * 10, *[1] * 40), right(*[1] * 10, *[0] * 4, *[1] * 36)
    found = compare_statistics(Accuracy(), first, second)
    half = 1.959964 * math.sqrt(15 - 36 / 52) / 52
    assert (found.low, found.high) == pytest.approx((6 / 52 - half, 6 / 52 + half), abs=1e-6)


@pytest.mark.parametrize(("gained", "lost", "same"), [(3, 0, 0), (4, 0, 5), (6, 1, 0), (5, 0, 7)])
def test_an_interval_holds_0_where_the_exact_test_rejects_nothing(gained, lost, same):
    first = right(*[0] * gained, *[1] * lost, *[1] * same)
    second = right(*[1] * gained, *[0] * lost, *[1] * same)
    found = compare_statistics(Accuracy(), first, second)
    assert found.p_value > 0.05 and found.low == 0.0
    graded = compare_statistics(ERROR, 1.5 * second, 1.5 * first)  # not right or wrong
    assert graded.low <= 0 <= graded.high


def test_unequal_systems_and_no_resamples_are_refused(good, references):
    with pytest.raises(DataError, match="210 hypotheses and 211 references"):
        compare(Bleu(), good, good[1:], references)
    for refused in (confidence, lambda *given, **how: compare(given[0], given[1], *given[1:], **how)):
        with pytest.raises(ConfigError, match=r"resample.*got 0"):
            refused(Bleu(), good, references, resamples=0)
    with pytest.raises(ConfigError, match=r"same items, got arrays of shapes \[3, 2\] and \[4, 2\]"):
        compare_statistics(Accuracy(), np.ones((3, 2)), np.ones((4, 2)))


# Several seeds


def test_with_one_run_each_it_is_the_test_of_items() -> None:
    chance = np.random.default_rng(1)
    one, other = (right(*(chance.random(211) < share)) for share in (0.5, 0.6))
    found, known = compare_repeated(Accuracy(), [one], [other]), compare_statistics(Accuracy(), one, other)
    assert found == (known.difference, known.low, known.high, known.p_value)


def test_seeds_that_differ_on_very_many_items_are_compared_by_students_t() -> None:
    # shares .50 .52 .54 and .60 .61 .65 of 20,000 items, which then do not matter: t(4) of a pooled test
    size = 20_000
    sides = [[right(*[1] * int(size * share), *[0] * int(size * (1 - share))) for share in side]
             for side in ((0.50, 0.52, 0.54), (0.60, 0.61, 0.65))]  # fmt: skip
    found = compare_repeated(Accuracy(), *sides, resamples=100)
    error = math.sqrt((0.0008 + 0.0014) / 4 * (2 / 3))  # sums of squares 0.0008 and 0.0014
    assert found.value == pytest.approx(0.1, abs=1e-4)
    assert found.high - found.value == pytest.approx(2.776445 * error, rel=0.05)
    assert found.p_value == pytest.approx(student_tail(0.1 / error, 4), rel=0.1)


def test_variants_that_answer_alike_are_equal_and_few_items_prove_nothing() -> None:
    same = right(*[1, 0] * 11)
    assert compare_repeated(Accuracy(), [same] * 2, [same] * 3).p_value == 1.0
    # four items, each won by every run: an exchange of items gives this 2 times in 16
    four = compare_repeated(Accuracy(), [right(*[0] * 4)] * 3, [right(*[1] * 4)] * 3)
    assert (four.p_value, four.low, four.high) == (0.125, 0.0, 1.0)


def test_a_real_difference_is_found() -> None:
    chance = np.random.default_rng(3)
    first, second = (
        [right(*(chance.random(211) < share)) for _ in range(3)] for share in (0.5, 0.7)
    )  # fmt: skip
    found = compare_repeated(Accuracy(), first, second)
    assert found.p_value < 0.05 and found.low > 0


def test_other_items_are_refused() -> None:
    with pytest.raises(ConfigError, match="same test items"):
        compare_repeated(Accuracy(), [right(1, 0)], [right(1, 0, 1)])


def test_the_spread_over_seeds_widens_the_interval_of_a_mean() -> None:
    # s^2 = 0.0004, k = 2: 0.0002 of seeds; items 0.01 = half width / 1.96: V = 0.0003
    runs = [MetricScore("x", value, "", 10_000, True, value - 0.0195996, value + 0.0195996)
            for value in (0.5 - 0.01 * 2**0.5, 0.5 + 0.01 * 2**0.5)]  # fmt: skip
    low, high = mean_over_runs(runs)
    degrees = 0.0003**2 / (0.0002**2 + 0.0001**2 / 9999)
    assert (low, high) == pytest.approx(
        (0.5 - (half := student_quantile(degrees) * 0.0003**0.5), 0.5 + half), abs=1e-6
    )


def test_the_mean_over_test_sets_has_the_spread_of_each() -> None:
    chance = np.random.default_rng(4)
    sets = [np.stack([chance.normal(3, 1, size), np.ones(size)], 1) for size in (150, 600)]
    found = mean_with_interval(ERROR, sets)
    means, errors = zip(*((one[:, 0].mean(), one[:, 0].std() / len(one) ** 0.5) for one in sets), strict=True)
    assert (found.value, found.size) == (pytest.approx(np.mean(means)), 750)
    assert found.high - found.low == pytest.approx(2 * 1.96 * math.hypot(*errors) / 2, rel=0.1)
    assert found.signature.startswith("unit:value|mean of 2 sets|bca:")


# Student


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.706), (2, 4.303), (9, 2.262), (10, 2.228), (49, 2.010), (1e6, 1.960)]
)
def test_quantiles_are_those_of_the_tables(freedom: float, value: float) -> None:
    assert student_quantile(freedom) == pytest.approx(value, abs=6e-4)
    assert student_tail(value, freedom) == pytest.approx(0.05, abs=2e-4)


def test_tails_of_one_and_two_degrees_have_their_closed_forms() -> None:
    for t in (0.1, 1.0, 5.0, 40.0):
        assert student_tail(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, abs=1e-12)
        assert student_tail(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-12)


def test_three_trainings_have_the_interval_of_a_table() -> None:
    found = mean_of([0.80, 0.86, 0.83])
    # mean 0.83, standard deviation 0.03, t(2) = 4.3027, 4.3027 * 0.03 / sqrt(3) = 0.074524
    assert (found.value, found.repeats) == (pytest.approx(0.83), 3)
    assert (found.low, found.high) == pytest.approx((0.83 - 0.074524, 0.83 + 0.074524), abs=1e-6)


def test_folds_of_the_same_data_have_a_wider_interval() -> None:
    # 5 folds test 1 example for 4 that are trained on: s² (1/5 + 1/4); s = 0.0158114, t(4) = 2.7764
    found = mean_of([0.80, 0.81, 0.82, 0.83, 0.84], overlap=1 / 4)
    assert found.high - found.value == pytest.approx(2.77645 * 0.0158114 * 0.45**0.5, abs=1e-6)


def test_one_training_has_no_interval() -> None:
    assert str(mean_of([0.5])) == "0.5"


def test_an_interval_of_all_possible_values_is_told_in_words() -> None:
    # two trainings: s = 0.1414, t(1) = 12.706, so 0.8 ± 1.27, cut at 0 and 1
    found = mean_of([0.7, 0.9], name="accuracy")
    assert not found.known and str(found) == "0.8 (2 trainings are too few for an interval)"
    assert str(mean_of([0.7, 0.9], name="loss")) == "0.8 [-0.4706, 2.071]"
