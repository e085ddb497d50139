"""Inputs that are too many for a GPU's memory are answered in smaller parts."""

from collections.abc import Sequence

import pytest
import torch

from weft.errors import DataError
from weft.tasks.predictor import each


def answers(most: int) -> tuple[list[int], list[int | DataError]]:
    """The sizes of the batches of 1 to 11 where memory suffices for so many, and what is found."""
    sizes: list[int] = []

    def doubled(numbers: Sequence[int]) -> list[int]:
        sizes.append(len(numbers))
        if len(numbers) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if 7 in numbers:
            raise DataError("7 cannot be doubled")
        return [2 * number for number in numbers]

    return sizes, list(each(range(1, 12), doubled))


def test_halves_are_answered_where_memory_does_not_suffice() -> None:
    sizes, found = answers(3)
    assert [one for one in found if isinstance(one, int)] == [2, 4, 6, 8, 10, 12, 16, 18, 20, 22]
    assert isinstance(found[6], DataError) and sizes[:3] == [11, 5, 2]


def test_one_input_that_needs_too_much_ends_the_command() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        answers(0)
