"""The generated problems are those of the papers, for any batch size."""

import numpy as np
import pytest

from weft.data.memory import BLANK, GO, SYMBOLS, adding, copying


def test_a_sum_is_that_of_two_marks_one_in_each_half() -> None:
    x, y = adding([7], np.arange(997), 23)
    assert x.shape == (997, 23, 2) and x.dtype == y.dtype == np.float32
    marks = [np.flatnonzero(row) for row in x[..., 1]]
    assert {len(mark) for mark in marks} == {2}
    assert {int(first) for first, _ in marks} == set(range(11))
    assert {int(second) for _, second in marks} == set(range(11, 23))
    np.testing.assert_allclose(y, [x[n, mark, 0].sum() for n, mark in enumerate(marks)], rtol=1e-6)
    assert x[..., 0].min() >= 0 and x[..., 0].max() < 1


def test_the_baseline_of_adding_is_the_variance_of_two_uniform_numbers() -> None:
    _, y = adding([1], np.arange(20_000), 2)
    assert ((y - 1) ** 2).mean() == pytest.approx(1 / 6, abs=0.004)


@pytest.mark.parametrize("delay", [1, 2, 13])
def test_a_copy_comes_after_the_sign_and_the_delay(delay: int) -> None:
    x, y = copying([3], np.arange(5), delay, 7)
    assert x.shape == y.shape == (5, delay + 14)
    assert (x[:, :7] == y[:, -7:]).all() and (x[:, :7] < SYMBOLS).all()
    assert (np.argmax(x == GO, 1) == 7 + delay - 1).all() and (x == GO).sum() == 5
    assert (x[:, -7:] == BLANK).all() and (y[:, :-7] == BLANK).all()


def test_an_example_is_the_same_in_any_batch_and_another_in_another_set() -> None:
    for make in (lambda seed, n: adding(seed, n, 11), lambda seed, n: copying(seed, n, 5, 3)):
        whole, alone = make([1, 0], np.arange(9)), make([1, 0], np.array([4]))
        assert all((one[4] == other[0]).all() for one, other in zip(whole, alone, strict=True))
        other = make([1, 1], np.arange(9))
        assert not (whole[0] == other[0]).all()
