"""MultiheadAttention agrees with torch.nn's, and says in a sentence what torch says in none."""

from typing import Any

import pytest
import torch
from torch import nn

from weft.errors import ConfigError, ShapeError
from weft.nn import MultiHeadAttention, MultiheadAttention
from weft.probe import probe

PADDING = torch.tensor([[False] * 5, [False] * 2 + [True] * 3, [False] + [True] * 4])
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)


def both(**settings: Any) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
    theirs = nn.MultiheadAttention(6, 2, dtype=torch.float64, **settings)
    ours = MultiheadAttention(6, 2, dtype=torch.float64, **settings)
    assert ours.load_state_dict(theirs.state_dict()).missing_keys == []
    assert isinstance(ours, nn.MultiheadAttention)
    return theirs, ours


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "masks", [(), (PADDING,), (None, True, CAUSAL), (PADDING, False), (PADDING, True, CAUSAL, False)]
)
def test_it_equals_torchs_with_its_masks(training: bool, batch_first: bool, masks: tuple[Any, ...]) -> None:
    theirs, ours = (module.train(training) for module in both(batch_first=batch_first))
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    x = x if batch_first else x.transpose(0, 1)
    for got, want in zip(ours(x, x, x, *masks), theirs(x, x, x, *masks), strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_other_widths_and_one_sequence_equal_torchs() -> None:
    theirs, ours = both(kdim=3, vdim=7, add_bias_kv=True, batch_first=True)
    given = [torch.randn(2, 4, 6), torch.randn(2, 5, 3), torch.randn(2, 5, 7)]
    for rows in (given, [one[0] for one in given]):
        wide = [one.double() for one in rows]
        torch.testing.assert_close(ours(*wide), theirs(*wide), rtol=1e-12, atol=1e-12)


def test_a_probe_sees_the_weights_of_every_head_and_changes_nothing() -> None:
    _, ours = both(batch_first=True)
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    with probe() as seen:
        y, weights = ours(x, x, x, PADDING)
        without = ours(x, x, x, PADDING, need_weights=False)[1]
    assert [one.shape for one in seen["self_attention"]] == [(3, 2, 5, 5)] * 2
    assert without is None
    torch.testing.assert_close(weights, seen["self_attention"][0].mean(1))
    torch.testing.assert_close(y, ours(x, x, x, PADDING)[0], rtol=1e-12, atol=1e-12)


x = torch.randn(3, 5, 6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((x[..., 1:], x, x), r"expected query of shape \[rows, steps, 6\], got \[3, 5, 5\]"),
        ((x, x[1:], x[1:]), "of the same rows"),
        ((x, x, x[:, 1:]), "of the same steps"),
        ((x, x.double(), x), r"key of torch.float32, as the weights are, got torch.float64"),
        ((x, x, x.to("meta")), "expected value on cpu, .* got meta"),
        ((x, x.tolist(), x), "expected key as a tensor .*, got a list"),
        ((x, x, x, PADDING.tolist()), "expected key_padding_mask of shape .*, got a list"),
        ((x, x, x, PADDING.numpy()), "expected key_padding_mask of shape .*, got an? ndarray"),
        ((x, x, x, PADDING[1:]), r"key_padding_mask of shape \[3, 5\], .* got \[2, 5\]"),
        ((x, x, x, PADDING.long()), "True = ignored, as in torch"),
        ((x, x, x, PADDING.to("meta")), "expected key_padding_mask on cpu"),
        ((x, x, x, None, True, CAUSAL[1:]), r"attn_mask of shape \[5, 5\] or \[6, 5, 5\]"),
        ((x, x, x, torch.ones(3, 5, dtype=torch.bool)), "row 0 with padding alone; .* with ~mask"),
        ((x, x, x, torch.full((3, 5), -torch.inf)), "row 0 with padding alone; .* or -inf in one of numbers"),
        ((x, x, x, None, True, CAUSAL.new_ones(5, 5)), "got none for query 0 of row 0"),
        ((x, x, x, None, True, torch.zeros(5, 5).log()), "got none for query 0 of row 0"),
        ((x, x, x, PADDING.flip(1), True, CAUSAL), "got none for query 0 of row 1"),
        ((x, x, x, torch.full((3, 5), torch.nan)), "row 0 with padding alone"),
    ],
)
def test_a_mistake_is_a_sentence(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ShapeError, match=words) as error:
        MultiheadAttention(6, 2, batch_first=True)(*given)
    assert str(error.value).startswith("MultiheadAttention: ")


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ConfigError, match="5 heads do not divide the width 6"):
        MultiheadAttention(6, 5)
    assert MultiHeadAttention is MultiheadAttention
