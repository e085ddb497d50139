"""An LSTM whose gates read their own unit's cell state, over all time steps; torch has no operation for it.

The plain twin is the loop over ../../../cells/peephole.py's `step`. Read next: ../compiled.py.
"""

from torch import Tensor

from weft.nn.kernels.cells.layer import Given, run
from weft.nn.kernels.choice import Cells


def peephole(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    weight_c: Tensor,
    mask: Tensor | None,
    *,
    backend: Cells | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates stacked i, f, candidate, o; i and f read c_{t-1}, o reads c_t.

    Args:
        x: [B, T, D]; h, c: [B, H] the initial state.
        weight_x: [4H, D]; weight_h: [4H, H]; bias: [4H].
        weight_c: [3, H], peephole weights of i, f, o.
        mask: [B, T] bool, real positions first, or None.
        backend: forces a way (choice.py).

    Returns:
        y [B, T, H] (zero at padding), h [B, H], c [B, H].
    """
    given = Given(x, h, c, weight_x, weight_h, bias, weight_c, mask)
    return run("peephole", given, None, backend)  # type: ignore[return-value]
