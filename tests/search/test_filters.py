"""Each filter against a hand calculation."""

import pytest
import torch

from weft.errors import ConfigError
from weft.search import filters
from weft.search.offered import Narrowing

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
    ("p", "first", "second"),
    [
        (0.49, [False, True, True, True], [True] * 4),  # at least 0.196 beside 0.4
        (0.51, [False, True, False, True], [True] * 4),  # at least 0.204
        (1.0, [False, True, False, False], [True] * 4),
        (0.0, [True] * 4, [True] * 4),
    ],
)
def test_min_p_keeps_what_is_near_the_most_probable(p: float, first: list[bool], second: list[bool]) -> None:
    assert kept(filters.min_p(PROB.log(), p)) == [first, second]


@pytest.mark.parametrize(
    ("p", "first", "second"),
    [
        # The entropy is 1.280; of surprises 2.303, 0.916, 1.609, 1.204 the last is closest, then 1.609.
        (0.2, [False, False, False, True], [True, False, False, False]),
        (0.31, [False, False, True, True], [True, True, False, False]),
        (0.51, [False, True, True, True], [True, True, True, False]),
        (0.91, [True] * 4, [True] * 4),
        (1.0, [True] * 4, [True] * 4),
    ],
)
def test_typical_p_keeps_what_is_as_surprising_as_expected(
    p: float, first: list[bool], second: list[bool]
) -> None:
    assert kept(filters.typical_p(PROB.log(), p)) == [first, second]


def test_typical_p_and_min_p_are_those_of_transformers() -> None:
    library = pytest.importorskip("transformers", reason="pip install --group export-tests")
    logits = torch.randn(13, 37, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    logits[:, :5] = OUT
    for p in (0.05, 0.3, 0.9):
        for mine, theirs in (
            (filters.typical_p(logits, p), library.TypicalLogitsWarper(p)),
            (filters.min_p(logits, p), library.MinPLogitsWarper(p)),
        ):
            assert kept(mine) == kept(theirs(None, logits.clone()))


def test_narrow_applies_all_of_them_in_order() -> None:
    logits = torch.randn(13, 37, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    how = Narrowing(temperature=0.7, top_k=20, top_p=0.9, min_p=0.05, typical_p=0.8)
    found = filters.top_k(filters.temperature(filters.ban(logits, [3]), 0.7), 20)
    found = filters.typical_p(filters.min_p(filters.top_p(found, 0.9), 0.05), 0.8)
    assert torch.equal(filters.narrow(logits, how, [3]), found)
    assert torch.equal(filters.narrow(logits, Narrowing()), logits)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: filters.temperature(x, 0.0), "temperature: .*0.0"),
        (lambda x: filters.temperature(x, float("nan")), "temperature: .*nan"),
        (lambda x: filters.top_k(x, 0), "top_k: .*0"),
        (lambda x: filters.top_p(x, 0.0), "top_p: .*0.0"),
        (lambda x: filters.top_p(x, 1.5), "top_p: .*1.5"),
        (lambda x: filters.min_p(x, -0.1), "min_p: .*-0.1"),
        (lambda x: filters.typical_p(x, 0.0), "typical_p: .*0.0"),
    ],
)
def test_a_setting_out_of_range_is_refused(call, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        call(PROB.log())
