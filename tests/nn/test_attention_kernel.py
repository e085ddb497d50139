"""Law 7 for attention of many heads: torch's fused operation and the formula agree, whichever is chosen."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from weft import masks
from weft.nn.kernels import choice
from weft.nn.kernels.attention import attention, plain_attention, prefers_plain

B, H, T, S, K = 5, 2, 3, 7, 11


def inputs(steps: int = T, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((B, H, steps, K), (B, H, S, K), (B, H, S, K))
    return tuple(normal(*shape, seed=k, dtype=dtype).requires_grad_() for k, shape in enumerate(shapes))


def both(steps: int, mask: Tensor | None, *, causal: bool, dtype: torch.dtype = torch.float64) -> list[tuple]:
    results = []
    for function in (attention, plain_attention):
        given = inputs(steps, dtype)
        y = function(*given, mask, causal=causal)
        (normal(*y.shape, seed=9, dtype=dtype) * y).sum().backward()
        results.append((y, *(each.grad for each in given)))
    return results


MASKS = {
    "everything": (T, None, False),
    "source": (T, masks.from_lengths(torch.tensor([7, 4, 1, 6, 2]), S)[:, None, None], False),
    "past": (T, masks.causal(T, S)[None, None], False),
    "causal": (S, None, True),
    "one step": (1, None, False),
}


@pytest.mark.parametrize(("steps", "mask", "causal"), MASKS.values(), ids=MASKS)
def test_law_7_fused_and_formula_agree(steps: int, mask: Tensor | None, causal: bool) -> None:
    assert not prefers_plain(*inputs()[:2], dropout=0.0)
    fused, plain = both(steps, mask, causal=causal)
    close(fused, plain)
    fused, plain = both(steps, mask, causal=causal, dtype=torch.float32)
    close(fused, plain, 1e-5)


def test_the_formula_serves_short_bfloat16_training_and_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = inputs(dtype=torch.bfloat16)
    assert prefers_plain(q, k, 0.0)
    assert prefers_plain(*inputs()[:2], dropout=0.1)
    with torch.no_grad():
        assert not prefers_plain(q, k, 0.1)
    short = attention(q, k, v, None)
    monkeypatch.setattr(choice, "FUSED_FROM", 0)
    assert not prefers_plain(q, k, 0.1)
    fused = attention(q, k, v, None)
    assert (short - fused).norm() < 0.02 * fused.norm()  # bfloat16 keeps 8 bits


def test_dropped_weights_leave_the_mean() -> None:
    torch.manual_seed(1)
    q, k, v = inputs()
    with torch.no_grad():
        want = attention(q, k, v, None)
    mean = torch.stack([attention(q, k, v, None, dropout=0.3).detach() for _ in range(2000)]).mean(0)
    assert (mean - want).abs().max() < 0.15  # 2,000 draws: three standard errors of the widest output
