"""Any metric scores outputs beside one reference or several."""

import math
import re

import numpy as np
import pytest

from weft.errors import DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Chrf
from weft.metrics.numbers import Mae
from weft.metrics.probabilities import Bits, Perplexity
from weft.metrics.scored import (
    ComparedOutputs,
    DeferredOutputs,
    Form,
    form_of,
    mean_of,
    of_lines,
    offered,
    ratio,
    scored,
)
from weft.metrics.wer import Wer

OUTPUTS = ["a b c", "d e", "f"]
REFERENCES = ["a b", "d e", "g h i"]


@pytest.mark.parametrize("metric", [Accuracy(), Wer(), Chrf()], ids=lambda one: one.key)
def test_with_one_reference_it_is_the_metric_itself(metric: Wer) -> None:
    lowest = {"empty": ["", "", ""]}
    ours = of_lines(OUTPUTS, REFERENCES, None, lowest).scored(metric)
    assert ours.json() == scored(metric, OUTPUTS, REFERENCES, baselines=lowest).json()
    assert of_lines(OUTPUTS, REFERENCES).value(metric) == ours.value


def test_each_line_is_compared_with_its_best_reference() -> None:
    several = ComparedOutputs(OUTPUTS, [["x y z w", "a b"], ["d e"], ["g h i", "f f", "g"]])
    # edits 1, 0, 1 against "a b", "d e" and "f f" or "g": of these the fewest per word are 1 of 2
    assert several.scored(Wer()).value == pytest.approx(100 * (1 + 0 + 1) / (2 + 2 + 2))
    assert "references:" in several.scored(Wer()).score.signature
    assert several.value(Accuracy()) == pytest.approx(1 / 3)


def test_lines_that_do_not_match_are_refused() -> None:
    with pytest.raises(DataError, match="got 2"):
        of_lines(["a", "b"], ["a"]).value(Wer())
    with pytest.raises(DataError, match="empty"):
        of_lines(["a"], [" "]).value(Wer())


def shares(right: int, count: int = 100) -> list[str]:
    return ["yes"] * right + ["no"] * (count - right)


@pytest.mark.parametrize(
    ("right", "baseline", "said", "difference"),
    [
        (90, 70, "better than", "+0.2000"),
        (70, 90, "worse than", "-0.2000"),
        (81, 80, "not clearly better than", "+0.0100"),
        (80, 80, "not clearly better than", "+0.0000"),
    ],
)
def test_the_verdict_follows_from_the_interval_of_the_paired_difference(
    right: int, baseline: int, said: str, difference: str
) -> None:
    lowest = {"weak": shares(10), "strong": shares(baseline)}
    found = of_lines(shares(right), ["yes"] * 100, None, lowest).scored(Accuracy())
    verdict = found.verdict()
    assert f": {said} the best baseline (strong 0.{baseline}00; difference {difference} [" in verdict
    assert found.is_worse() == (said == "worse than")
    (line,) = (line for line in found.lines() if "strong" in line)
    assert (
        line.endswith("0")
        if said == "better than"
        else line.endswith(f"  <- the model is {said} the baseline")
    )


def test_a_baseline_that_is_a_number_is_judged_by_the_interval_of_the_score() -> None:
    error = ratio("error", "unit:value", higher_is_better=False)
    sums = np.random.default_rng(1).random(50)
    for value, said in ((0.9, "better than"), (0.1, "worse than"), (0.52, "not clearly better than")):
        found = mean_of(error, sums, baselines={"a guess": value})
        assert f": {said} the best baseline (a guess {value:.4f};" in found.verdict()


def test_few_items_say_that_they_have_no_interval_and_no_clear_verdict() -> None:
    found = mean_of(ratio("error", "", higher_is_better=False), np.array([1.0, 2.0]), baselines={"a": 9.0})
    assert "    no interval: fewer than 10 items" in found.lines()
    assert "not clearly better than the best baseline (a 9.00; difference -7.50)" in found.verdict()
    assert (
        mean_of(ratio("error", "", higher_is_better=False), np.ones(3), baselines={}).verdict()
        == "error 1.0000"
    )


def test_a_metric_gets_the_outputs_that_it_reads() -> None:
    labels = ComparedOutputs(["a", "b"], ["a", "a"], reads="labels")
    texts = of_lines(["a b", "c"], ["a b", "d"])
    assert offered([texts, labels], Accuracy()) == [labels]
    assert offered([texts, labels], Chrf()) == [texts]
    with pytest.raises(DataError, match=r"^chrf: reads texts, but this evaluation has labels; leave it out$"):
        offered([labels], Chrf())


def test_items_of_a_group_are_summed() -> None:
    compared = ComparedOutputs(
        np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0]), reads="numbers", groups=np.array([0, 1, 0])
    )
    found = compared.scored(Mae())
    assert found.statistics is not None and found.statistics.tolist() == [[3.0, 2.0], [0.0, 1.0]]
    assert found.value == 1.0


def test_outputs_may_be_made_once_a_metric_reads_them() -> None:
    made: list[int] = []

    def make() -> ComparedOutputs:
        made.append(1)
        return ComparedOutputs(np.array([1.0, 4.0]), np.array([2.0, 2.0]), reads="numbers", about="seed:7")

    deferred = DeferredOutputs("numbers", make)
    assert offered([deferred, of_lines(OUTPUTS, REFERENCES)], Chrf()) and not made
    (found,) = offered([deferred], Mae())
    assert found.value(Mae()) == 1.5 and made == [1]
    assert found.scored(Mae()).score.signature == "unit:value|seed:7"


def test_nats_of_lines_are_compared_with_those_of_a_baseline_line_by_line() -> None:
    tokens = np.full(12, 5.0)
    nats = tokens * math.log(2) + np.tile([3.0, -3.0], 6)  # lines differ much more than models
    compared = ComparedOutputs(nats, tokens, baselines={"KN5": nats + 1.0}, reads="nats")
    for metric, value in ((Perplexity(), 2.0), (Bits(), 1.0)):
        found = compared.scored(metric)
        assert (found.value, found.score.size) == (pytest.approx(value), 60)
        difference = found.difference("KN5")
        assert difference[0] == pytest.approx(found.value - found.baselines["KN5"])
        assert difference[1] < difference[2] < 0 and found.score.high > found.baselines["KN5"]
        assert ": better than the best baseline (KN5 " in found.verdict()


def test_a_mean_is_compared_with_a_baseline_of_the_same_items() -> None:
    error, sums = ratio("error", "", higher_is_better=False), np.random.default_rng(1).random(50)
    found = mean_of(error, sums, beside={"near": sums + 0.01}, baselines={"far": 0.9})
    assert found.baselines == {"near": pytest.approx(sums.mean() + 0.01), "far": 0.9}
    assert found.difference("near") == pytest.approx((-0.01, -0.01, -0.01))


def test_a_difference_too_small_for_the_digits_of_the_score_is_shown_all_the_same() -> None:
    error, sums = ratio("error", "", higher_is_better=False), np.random.default_rng(1).random(50)
    found = mean_of(error, sums, beside={"near": sums + 3e-6 * np.sign(sums - 0.5)}).verdict()
    ends = re.search(r"difference ([+-].*) \[(.*), (.*)\]\)$", found)
    assert ends and all(0 < abs(float(one)) < 3e-6 for one in ends.groups()), found
    worse = mean_of(error, sums + 3e-8, beside={"near": sums})
    assert worse.lines()[1].endswith("worse than the baseline (difference +3e-08 [+3e-08, +3e-08])")
    noise = mean_of(error, sums, baselines={"near": float(np.mean(sums)) * (1 + 1e-15)})
    assert "difference +0.0000" in noise.verdict()
    same = mean_of(error, sums, beside={"near": sums}).verdict()
    assert same.endswith("difference +0.0000 [+0.0000, +0.0000])"), same


def test_items_are_told_apart_by_references_and_inputs() -> None:
    one = ComparedOutputs(np.ones(2), np.array([1.0, 2.0]), ["a", "b"], reads="nats")
    assert one.fingerprint() == one._replace(outputs=np.zeros(2)).fingerprint()
    others = (one._replace(sources=["a", "c"]), one._replace(references=np.array([1.0, 3.0])))
    assert len({one.fingerprint(), *(other.fingerprint() for other in others)}) == 3


SUMS, COUNTS = np.array([3.0, 5.0, 4.0]), np.array([2.0, 7.0, 1.0])


@pytest.mark.parametrize(
    ("form", "value"),
    [("mean", 1.2), ("root", math.sqrt(1.2)), ("percent", 120.0), ("perplexity", math.e**1.2)],
)
def test_each_form_is_its_formula(form: Form, value: float) -> None:
    metric = ratio("x", "unit:item", higher_is_better=False, form=form)
    assert float(metric.value(np.array([12.0, 10.0]))) == pytest.approx(value)
    found = mean_of(metric, SUMS, COUNTS, baselines={"lowest": 7.0})
    assert found.value == pytest.approx(value) and dict(found.baselines) == {"lowest": 7.0}
    assert form_of(metric) == form and form_of(Wer()) is None


def test_a_perplexity_too_large_for_a_number_is_still_one() -> None:
    metric = ratio("perplexity", "unit:token", higher_is_better=False, form="perplexity")
    assert math.isfinite(float(metric.value(np.array([1e6, 1.0]))))


def test_without_counts_each_item_is_one() -> None:
    metric = ratio("share", "unit:item", higher_is_better=True)
    assert mean_of(metric, SUMS, baselines={}).value == pytest.approx(4.0)
    assert mean_of(metric, SUMS, COUNTS, baselines={}, size=10).score.size == 10
