"""Scores by source length: every sentence in exactly one bin, each bin a corpus score."""

import pytest
import sacrebleu

from weft.errors import ConfigError, DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu
from weft.metrics.bylength import by_length, table


def test_borders_belong_to_the_lower_bin():
    sources = ["w " * length for length in (0, 1, 10, 11, 20, 21, 30, 31, 99)]
    rows = by_length(Accuracy(), ["x"] * 9, ["x"] * 9, sources)
    assert [(row.label, row.sentences) for row in rows] == [
        ("<=10", 3),
        ("11-20", 2),
        ("21-30", 2),
        (">30", 2),
    ]


def test_each_bin_is_sacrebleus_score_of_its_sentences(good, references):
    rows = by_length(Bleu(), good, references, references, edges=(5, 13))
    assert [row.label for row in rows] == ["<=5", "6-13", ">13"]
    for row, (low, high) in zip(rows, [(0, 5), (6, 13), (14, 99)], strict=True):
        kept = [n for n, line in enumerate(references) if low <= len(line.split()) <= high]
        want = sacrebleu.BLEU(force=True).corpus_score(
            [good[n] for n in kept], [[references[n] for n in kept]]
        )
        assert row.sentences == len(kept)
        assert row.score.value == pytest.approx(want.score, abs=1e-10)


def test_an_empty_bin_has_no_score_and_the_table_shows_a_dash():
    rows = by_length(Accuracy(), ["a", "a", "b"], ["a", "a", "c"], ["one", "two", "w " * 25])
    assert [row.score is None for row in rows] == [False, True, False, True]
    assert rows[0].score.value == 1 and rows[2].score.value == 0
    lines = table(rows).split("\n")
    assert lines[2].split() == ["11-20", "0", "-", "-"]
    assert lines[1].split() == ["<=10", "2", "1.0000", "0.3424", "to", "1.0000"]  # Wilson's


def test_length_may_be_measured_otherwise():
    rows = by_length(Accuracy(), ["a"], ["a"], ["一二三四五六七八九十百"], length=len)
    assert [row.sentences for row in rows] == [0, 1, 0, 0]


@pytest.mark.parametrize("edges", [(), (10, 10), (20, 10)])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ConfigError, match="rising edges"):
        by_length(Accuracy(), ["a"], ["a"], ["a"], edges=edges)


def test_unequal_sources_are_refused():
    with pytest.raises(DataError, match="1 source and 2 references"):
        by_length(Accuracy(), ["a", "b"], ["a", "b"], ["a"])
