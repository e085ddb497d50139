"""A part of one's own gets the laws by one line, and a part that breaks one is told which."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from weft.errors import DataError
from weft.metrics import Accuracy, Metric
from weft.nn import Cell, Linear, Score
from weft.testing import check_cell, check_metric, check_score


class Leaky(Cell):
    def __init__(self, in_size: int, size: int, *, a: float = 0.9) -> None:
        super().__init__(in_size, size)
        self.a, self.product = a, Linear(in_size + size, size)

    def start(self, like: Tensor) -> tuple[Tensor]:
        return (like.new_zeros(len(like), self.size),)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        h = self.a * state[0] + (1 - self.a) * torch.tanh(self.product(torch.cat([x, state[0]], -1)))
        return h, (h,)


class MixesRows(Leaky):
    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        return super().step(x + x.mean(0), state)


class RunsWrong(Leaky):
    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        y, after = super().run(x, state, mask)
        return 1.001 * y, after


class FirstKey(Score):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query[..., :1] * keys[:, :1, 0, None] + 0 * keys[:, None, :, 0]


class WordsOfAll(Metric):
    name = "words"

    def statistics(self, hypotheses: list[str], references: list[str], sources: list[str]) -> np.ndarray:
        return np.array(
            [
                [float(ours == theirs), len(hypotheses)]
                for ours, theirs in zip(hypotheses, references, strict=True)
            ]
        )

    def value(self, totals: np.ndarray) -> np.ndarray:
        return totals[..., 0] / totals[..., 1]

    def signature(self) -> str:
        return "words"


def test_a_right_cell_passes_with_its_settings() -> None:
    check_cell(lambda in_size, size: Leaky(in_size, size, a=0.5))


@pytest.mark.parametrize(
    ("make", "law"),
    [(MixesRows, "law_2_a_row_alone"), (RunsWrong, "law_7_fast_kernel_equals_plain_loop")],
)
def test_a_cell_that_breaks_a_law_is_told_which(make: type[Cell], law: str) -> None:
    with pytest.raises(AssertionError, match=f"broken: .*{law}"):
        check_cell(make)


def test_a_score_and_a_metric_that_break_a_law_are_told_which() -> None:
    with pytest.raises(AssertionError, match=r"broken: .*law_2_a_row_alone_and_each_pair_on_its_own"):
        check_score(FirstKey)
    with pytest.raises(
        AssertionError, match=r"broken: .*statistics_of_a_line_do_not_depend_on_its_neighbours"
    ):
        check_metric(WordsOfAll())


def test_a_metric_without_a_row_for_each_line_is_refused() -> None:
    class Summed(Accuracy):
        def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> Any:
            return super().statistics(hypotheses, references, sources).sum(0, keepdims=True)

    with pytest.raises(DataError, match=r"Summed\.statistics: expected one row .* each of 2 lines"):
        Summed().score(["a", "b"], ["a", "c"])


def test_a_metric_is_checked_by_its_class_too() -> None:
    check_metric(Accuracy)
