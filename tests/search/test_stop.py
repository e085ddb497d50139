"""When a beam search ends: what must score worse than the hypotheses that have ended."""

import pytest
import torch
from torch import Tensor

from weft.search.beam import Stop, beam_search
from weft.search.hypotheses import to_lists
from weft.search.step import Step


def counted(prob: list[list[float]], calls: list[int]) -> tuple[Step, Tensor]:
    """A step with these probabilities at each time, which notes how many rows it was called with."""

    def step(token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(len(token))
        return torch.tensor(prob, dtype=torch.float64)[state].log(), state + 1

    return step, torch.zeros(1, dtype=torch.int64)


@pytest.mark.parametrize(
    ("stop", "tokens", "steps"),
    [("best", [], 2), ("full", [], 2), ("worst", [0, 0, 0], 4), ("never", [0, 0, 0], 4)],
)
def test_a_stop_says_what_must_score_worse_than_what_has_ended(
    stop: Stop, tokens: list[int], steps: int
) -> None:
    """[1] has log .6 = -.51, [0, 1] log(.08) / 2 = -1.26; [0, 0] has log(.32) / 2 = -.57 in between.

    [0, 0, 0, 1] would be the best, log(.2592) / 4 = -.34.
    """
    calls: list[int] = []
    step, time = counted([[0.4, 0.6], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]], calls)
    found = beam_search(step, time, torch.tensor([0]), eos=1, max_length=4, width=2, stop=stop)
    assert to_lists(found, 1) == [[tokens]] and len(calls) == steps
    assert found.tokens.shape == (1, 1, len(tokens) + 1)


def test_a_full_beam_stops_also_before_what_scores_better() -> None:
    """A sure model: [1] has log .01, [0, 1] log(.0099) / 2 = -2.3, and [0, 0] is far better than both."""
    step, time = counted([[0.99, 0.01]] * 5 + [[0.01, 0.99]], [])
    found = beam_search(step, time, torch.tensor([0]), eos=1, max_length=9, width=2, stop="full")
    assert to_lists(found, 1) == [[[0]]]
