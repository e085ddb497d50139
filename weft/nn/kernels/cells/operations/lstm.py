"""An LSTM over all time steps, compiled or by torch's own operation (oneDNN on the CPU, cuDNN on a GPU).

For torch's operation the mask is one more input feature. It is 1 at padding, where its fixed weights close
the input gate and open the forget gate (sigmoid(-+1e4) is exactly 0 and 1), so c stays bit-identical. h is
then taken from the last real step. torch's packed sequences would not use the fused path on the CPU. The
plain twin is the loop over ../../../cells/lstm.py's `step`. Read next: gru.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.kernels.cells.held import hold_last, pad_feature
from weft.nn.kernels.cells.layer import Given, run
from weft.nn.kernels.cells.operations.recurrent import recurrent
from weft.nn.kernels.choice import Cells

HOLD = 1e4
ROWS = 8  # oneDNN's bfloat16 LSTM: a training step took 59 ms for 107 rows, 24 ms for 112; equal below 48


def lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    *,
    backend: Cells | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates in torch's order i, f, g (candidate), o.

    Args:
        x: [B, T, D]; h, c: [B, H] the initial state.
        weight_x: [4H, D]; weight_h: [4H, H]; bias: [4H].
        mask: [B, T] bool, real positions first, or None.
        backend: forces a way (choice.py).

    Returns:
        y [B, T, H] (zero at padding), h [B, H], c [B, H].
    """
    given = Given(x, h, c, weight_x, weight_h, bias, None, mask)
    return run("lstm", given, operation, backend)  # type: ignore[return-value]


def operation(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    _: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`lstm` with torch's own operation."""
    if mask is not None:
        size = weight_h.shape[1]
        x, weight_x = pad_feature(x, weight_x, mask, (-HOLD, HOLD, 0.0, 0.0), size)
    weights = [weight_x, weight_h, bias, torch.zeros_like(bias)]
    rows = len(x)
    extra = added_rows(x)
    if extra:
        x, h, c = F.pad(x, (0, 0, 0, 0, 0, extra)), F.pad(h, (0, 0, 0, extra)), F.pad(c, (0, 0, 0, extra))
    y, last_h, last_c = torch_lstm(x, (h[None], c[None]), weights)
    y, last_h, last_c, h = y[:rows], last_h[0, :rows], last_c[0, :rows], h[:rows]
    if mask is not None:
        y, last_h = hold_last(y, h, mask)
    return y, last_h, last_c


def torch_lstm(
    x: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor], sizes: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.lstm`; under autocast in float32 where `lacks_bfloat16`, because torch then raises an error.

    Args:
        x, state, weights, sizes: as for `recurrent`.
    """
    if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu") or not lacks_bfloat16():
        return recurrent(torch.lstm, x, state, weights, sizes)  # type: ignore[no-any-return]
    with torch.autocast("cpu", enabled=False):
        return recurrent(torch.lstm, *map(_wide, (x, state, weights)), sizes)  # type: ignore[no-any-return]


def lacks_bfloat16() -> bool:
    """Whether oneDNN has no LSTM in bfloat16 for this processor: it needs AVX-512 (torch 2.13)."""
    return not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _wide(given: Any) -> Any:
    """In float32: tensors of floating-point numbers, and those in a list."""
    if isinstance(given, list | tuple):
        return [_wide(each) for each in given]
    return given.float() if isinstance(given, Tensor) and given.is_floating_point() else given


def added_rows(x: Tensor) -> int:
    """Number of zero rows that make oneDNN fast, up to a multiple of ROWS; 0 in float32 or on a GPU."""
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    if x.device.type != "cpu" or len(x) < 48 or not (autocast or x.dtype == torch.bfloat16):
        return 0
    return -len(x) % ROWS
