"""Batches of word2vec and the table of GloVe, counted by hand."""

from collections import Counter

import numpy as np
import pytest

from weft.data.batching import NumberedEpochs, ShuffledBatches
from weft.errors import DataError
from weft.tasks.embeddings.data import CooccurrenceTable, Corpus, WordList, WordWindows

LINES = [["a", "b", "a", "c"], ["b"], ["rare", "c", "a"], []]


def known() -> WordList:
    return WordList.learn(LINES, min_count=2)


def test_frequent_words_come_first_and_rare_ones_have_no_number() -> None:
    assert (known().words, known().counts) == (["a", "b", "c"], [3, 2, 2])
    corpus = Corpus(LINES, known())
    assert corpus.words.tolist() == [0, 1, 0, 2, 1, 2, 0] and corpus.lines.tolist() == [0, 0, 0, 0, 1, 2, 2]
    assert corpus.total == 8


@pytest.mark.parametrize("window", [1, 2, 7])
def test_the_table_is_the_sum_over_pairs_of_a_line(window: int) -> None:
    wanted: Counter[tuple[int, int]] = Counter()
    for line in ([0, 1, 0, 2], [1], [2, 0]):
        for i, first in enumerate(line):
            for j, second in enumerate(line):
                if 0 < abs(i - j) <= window:
                    wanted[first, second] += 1 / abs(i - j)  # type: ignore[assignment]
    table = CooccurrenceTable(Corpus(LINES, known()), 3, window=window)
    cells = table.batch(np.arange(len(table)) + len(table))  # of the second epoch
    found = zip(cells.words.tolist(), cells.others.tolist(), cells.counts.tolist(), strict=True)
    assert {(i, j): x for i, j, x in found} == {pair: pytest.approx(x) for pair, x in wanted.items()}


def test_an_epoch_has_every_piece_once_and_no_number_comes_again() -> None:
    plan = NumberedEpochs(ShuffledBatches(7, 3, 1), 7)
    first, second = (np.concatenate(plan.epoch(number)) for number in (0, 1))
    assert sorted(first) == list(range(7)) and sorted(second) == list(range(7, 14))
    assert list(first) != list(second - 7)


def test_without_subsampling_a_batch_is_the_text_and_the_same_numbers_give_the_same_batch() -> None:
    windows = WordWindows(
        Corpus(LINES, known()), known().counts, window=3, subsample=0, length=5, noise=7, seed=1
    )
    batch, again = windows.batch(np.array([1, 0])), windows.batch(np.array([1, 0]))
    assert batch.words.tolist()[1] == [0, 1, 0, 2, 1] and batch.lines.tolist()[0] == [2, 2, -1, -1, -1]
    assert batch.words.tolist()[0][:2] == [2, 0] and batch.target_tokens == 7
    assert all(bool((x == y).all()) for x, y in zip(batch[:4], again[:4], strict=True))
    assert int(batch.reach.min()) >= 1 and int(batch.reach.max()) <= 3


def test_words_are_kept_and_noise_is_drawn_as_often_as_the_formulas_say() -> None:
    lines = [["x"] * 9 + ["y"]] * 2000
    words = WordList.learn(lines, min_count=1)
    windows = WordWindows(
        Corpus(lines, words), words.counts, window=2, subsample=0.05, length=100, noise=256, seed=1
    )
    batch = windows.batch(np.arange(len(windows)))
    kept = batch.words[batch.lines >= 0].bincount().double() / 2000
    for number, share in enumerate((0.9, 0.1)):
        wanted = min(1, (0.05 / share) ** 0.5 + 0.05 / share) * 10 * share
        assert float(kept[number]) == pytest.approx(wanted, rel=0.03)
    drawn = (batch.noise == 0).double().mean()
    assert float(drawn) == pytest.approx(0.9**0.75 / (0.9**0.75 + 0.1**0.75), abs=0.01)


def test_too_little_text_is_refused() -> None:
    with pytest.raises(DataError, match="4 different words"):
        WordList.learn(LINES, min_count=9)
    with pytest.raises(DataError, match="two words that have vectors"):
        Corpus([["a"], ["b"]], known())
