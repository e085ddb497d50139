"""The generated problems are those of the papers, for any batch size."""

import numpy as np
import pytest

from weft.tasks.memory.data import BLANK, GO, NUM_SIGNS, PROBLEMS, SYMBOLS, Drawn, drawn, swaps


def many(problem: str, count: int, length: int, symbols: int = 1) -> Drawn:
    return drawn(PROBLEMS[problem].draw, [3], np.arange(count), length, symbols)


def test_a_sum_is_that_of_two_marks_one_in_each_half() -> None:
    x, y = many("adding", 997, 23)
    assert x.shape == (997, 23, 2) and x.dtype == y.dtype == np.float32
    marks = [np.flatnonzero(row) for row in x[..., 1]]
    assert {len(mark) for mark in marks} == {2}
    assert {int(first) for first, _ in marks} == set(range(11))
    assert {int(second) for _, second in marks} == set(range(11, 23))
    np.testing.assert_allclose(y, [x[n, mark, 0].sum() for n, mark in enumerate(marks)], rtol=1e-6)
    assert x[..., 0].min() >= 0 and x[..., 0].max() < 1


def test_the_baseline_of_adding_is_the_variance_of_two_uniform_numbers() -> None:
    _, y = many("adding", 20_000, 2)
    assert ((y - 1) ** 2).mean() == pytest.approx(1 / 6, abs=0.004)


@pytest.mark.parametrize("delay", [1, 2, 13])
def test_a_copy_comes_after_the_sign_and_the_delay(delay: int) -> None:
    x, y = many("copying", 5, delay, 7)
    assert x.shape == y.shape == (5, delay + 14)
    assert (x[:, :7] == y[:, -7:]).all() and (x[:, :7] < SYMBOLS).all()
    assert (np.argmax(x == GO, 1) == 7 + delay - 1).all() and (x == GO).sum() == 5
    assert (x[:, -7:] == BLANK).all() and (y[:, :-7] == BLANK).all()


def test_an_example_is_the_same_in_any_batch_and_another_in_another_set() -> None:
    for problem in PROBLEMS.values():
        whole = drawn(problem.draw, [1, 0], np.arange(9), 11, 3)
        alone = drawn(problem.draw, [1, 0], np.array([4]), 11, 3)
        assert all((one[4] == other[0]).all() for one, other in zip(whole, alone, strict=True))
        other = drawn(problem.draw, [1, 1], np.arange(9), 11, 3)
        assert not (whole[0] == other[0]).all()


def test_selective_symbols_are_found_by_who_drops_the_blanks() -> None:
    x, y = many("selective", 300, 11, 4)
    assert x.shape == y.shape == (300, 16) and (x[:, 11] == GO).all() and (x[:, 12:] == BLANK).all()
    assert all(
        row[:11][row[:11] < SYMBOLS].tolist() == said[-4:].tolist() for row, said in zip(x, y, strict=True)
    )
    assert (y[:, :-4] == BLANK).all() and (x[:, :11] < SYMBOLS).any(0).all()


def test_what_followed_the_sign_is_found_by_who_looks_for_it() -> None:
    x, y = many("induction", 300, 11)
    assert x.shape == y.shape == (300, 12) and ((x == GO).sum(1) == 2).all() and (x[:, -1] == GO).all()
    first = (x == GO).argmax(1)
    assert (x[np.arange(300), first + 1] == y[:, -1]).all() and set(first) == set(range(10))
    assert (y[:, :-1] == BLANK).all() and set(y[:, -1]) == set(range(SYMBOLS))


def test_keys_are_answered_by_who_keeps_a_dictionary() -> None:
    x, y = many("recall", 300, 9)
    assert x.shape == y.shape == (300, 27) and (y[:, :18] == BLANK).all()
    for row, said in zip(x, y, strict=True):
        known = dict(zip(row[0:18:2], row[1:18:2], strict=True))
        assert len(known) == 9 and min(known) >= NUM_SIGNS
        assert [known[key] for key in row[18:]] == said[18:].tolist()
    assert len({tuple(np.argsort(row)) for row in x[:, 18:]}) > 250  # in any order


@pytest.mark.parametrize("cups", [2, 3, 5])
def test_the_ball_is_found_by_who_multiplies_the_permutations(cups: int) -> None:
    x, y = many("cups", 300, 13, cups)
    matrices = np.stack([np.eye(cups)] * len(swaps(cups)))
    for matrix, (one, other) in zip(matrices, swaps(cups), strict=True):
        matrix[[one, other]] = matrix[[other, one]]
    place = np.tile(np.eye(cups)[0], (300, 1))
    for step in range(13):
        place = np.einsum("bij,bj->bi", matrices[x[:, step]], place)
        assert (place.argmax(1) == y[:, step]).all()
    assert set(x.ravel()) == set(range(len(swaps(cups))))
    if cups == 2:
        assert (y == x.cumsum(1) % 2).all()
