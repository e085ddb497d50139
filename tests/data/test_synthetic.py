"""Which synthetic pairs are kept, by hand."""

import math

from weft.data.synthetic import PairLimits, judged, pairs, scored

LONG = "a" * 40


def test_each_reason_leaves_its_pair_out() -> None:
    texts = ["one", "two", "three", "42", "four", LONG, LONG, LONG, "five"]
    lines = [
        "-0.5\tuno",
        "",  # no answer
        "-0.1\tthree",  # equal
        "-0.9\t42",  # equal, but no words
        "-1.5\tcuatro",  # improbable
        "-0.2\t" + "b" * 44,
        "-0.3\t" + "b" * 200,  # five times as long, 1.1 is usual
        "-0.4\t" + "b" * 40,
        "-0.6\tcinco",
    ]
    found = judged(texts, lines, PairLimits(least=-1.0, share=1.0, ratio=3.0))
    assert [reason < 0 for reason in found.reasons] == [
        True, False, False, True, False, True, False, True, True,
    ]  # fmt: skip
    assert found.dropped == {
        "without a translation": 1,
        "with a translation equal to the text": 1,
        "with an unusual length ratio": 1,
        "with a score below -1": 1,
    }
    assert found.kept == 5 and found.lowest == -0.9 and math.isclose(found.usual, 1.1)
    kept = list(pairs(texts, lines, found, "<bt>"))
    assert kept[0] == ("<bt> uno", "one") and kept[-1] == ("<bt> cinco", "five") and len(kept) == 5
    assert next(pairs(texts, lines, found))[0] == "uno"


def test_a_share_keeps_the_best_and_of_equals_the_first() -> None:
    lines = [f"{score}\tx" for score in (-3.0, -1.0, -2.0, -2.0, -4.0)]
    texts = list("abcde")
    found = judged(texts, lines, PairLimits(share=0.5))  # round(2.5) = 2
    assert [text for _, text in pairs(texts, lines, found)] == ["b", "c"]
    found = judged(texts, lines, PairLimits(least=-2.5, share=2 / 3))  # two of the three that are left
    assert [text for _, text in pairs(texts, lines, found)] == ["b", "c"]
    assert found.dropped == {
        "with a score below -2.5": 2,
        "not among the best 66.6667 %": 1,
    }


def test_no_pair_may_be_left() -> None:
    found = judged(["a"], [""], PairLimits())
    assert found.kept == 0 and found.lowest == math.inf
    assert scored("-1.0\t  ") == (-math.inf, "")
