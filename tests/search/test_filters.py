"""Each filter against a hand calculation."""

import pytest
import torch

from weft.errors import ConfigError
from weft.search import filters

OUT = -float("inf")
PROB = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)


def kept(logits: torch.Tensor) -> list[list[bool]]:
    return (logits > OUT).tolist()


def test_ban_leaves_out_the_given_tokens_and_nothing_else() -> None:
    logits = PROB.log()
    got = filters.ban(logits, [0, 3])
    assert kept(got) == [[False, True, True, False]] * 2
    assert torch.equal(got[:, 1:3], logits[:, 1:3])
    assert torch.equal(logits, PROB.log())


def test_temperature_divides() -> None:
    """At 1/2 probabilities are squared: 1 : 16 : 4 : 9, of 30."""
    got = filters.temperature(PROB.log(), 0.5).softmax(1)[0]
    torch.testing.assert_close(got, torch.tensor([1, 16, 4, 9], dtype=torch.float64) / 30)


def test_top_k_keeps_the_k_largest_and_of_equal_ones_the_lower_ids() -> None:
    assert kept(filters.top_k(PROB.log(), 2)) == [[False, True, False, True], [True, True, False, False]]
    assert torch.equal(filters.top_k(PROB.log(), 9), PROB.log())


@pytest.mark.parametrize(
    ("p", "first", "second"),
    [
        (0.39, [False, True, False, False], [True, True, False, False]),
        (0.41, [False, True, False, True], [True, True, False, False]),
        (0.69, [False, True, False, True], [True, True, True, False]),
        (0.71, [False, True, True, True], [True, True, True, False]),
        (1e-9, [False, True, False, False], [True, False, False, False]),
        (1.0, [True] * 4, [True] * 4),
    ],
)
def test_top_p_keeps_the_smallest_set_that_holds_p(p: float, first: list[bool], second: list[bool]) -> None:
    assert kept(filters.top_p(PROB.log(), p)) == [first, second]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: filters.temperature(x, 0.0), "temperature: .*0.0"),
        (lambda x: filters.temperature(x, float("nan")), "temperature: .*nan"),
        (lambda x: filters.top_k(x, 0), "top_k: .*0"),
        (lambda x: filters.top_p(x, 0.0), "top_p: .*0.0"),
        (lambda x: filters.top_p(x, 1.5), "top_p: .*1.5"),
    ],
)
def test_a_setting_out_of_range_is_refused(call, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        call(PROB.log())
