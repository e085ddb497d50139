"""Minimum Bayes risk decoding: by hand, and in the tasks that write."""

import pytest

from tests.shared import shared_run
from weft.metrics.bleu import Chrf, least_risk
from weft.run import open_run
from weft.search.offered import Decoding


def test_a_text_drawn_twice_counts_twice() -> None:
    # Texts of one letter each: the utility is 100 for the same text and 0 for another one.
    assert least_risk(["a", "b", "b", "c"]) == [1]
    assert least_risk(["a", "b", "b", "c"], 3) == [1, 0, 3]  # a and c have the same risk: as drawn


def test_the_order_is_that_of_the_mean_utility() -> None:
    texts = ["the cat sat", "the cat sat down", "a dog ran", "the cat ran", "the cat sat"]
    mean = [sum(Chrf().score([one], [other]).value for other in texts) / len(texts) for one in texts]
    order = sorted({0, 1, 2, 3}, key=lambda place: -mean[place])  # the last text is the first again
    assert least_risk(texts, 9) == order


@pytest.mark.parametrize("name", ["translate", "language in windows"])
def test_the_answer_is_the_draw_of_least_risk(name: str) -> None:
    opened = open_run(shared_run(name), device="cpu")
    settings = opened.task.prediction_settings
    line = "alpha beta gamma delta" if name == "translate" else "the cat"
    how = {"search": "sample", "temperature": 2.0, "seed": 3}

    def answer(**more: object) -> list[str]:
        predictor = opened.pipeline.predictor(opened.model, settings(search={**how, **more}))
        return next(iter(predictor.answers([line]))).text().split("\n")

    drawn = answer(nbest=9)
    skip = 0 if name == "translate" else len(line)
    best = [drawn[place] for place in least_risk([text[skip:] for text in drawn], 2)]
    assert len(set(drawn)) > 2
    assert answer(mbr=9) == best[:1] and answer(mbr=9, nbest=2) == best


def test_it_needs_samples() -> None:
    with pytest.raises(ValueError, match="mbr: expected search: sample, got beam"):
        Decoding(mbr=8)
    with pytest.raises(ValueError, match="mbr: expected at least 3, the value of nbest, got 2"):
        Decoding(search="sample", mbr=2, nbest=3)
    with pytest.raises(ValueError, match="mbr: applies to sampling"):
        Decoding().with_settings({"mbr": 8})
