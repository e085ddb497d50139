"""Recurrent layers over all time steps: an LSTM, GRU, Elman network and their kin.

A layer is computed by one of several ways; choice.py has the rule, and the plain twin of each is the loop
over its cell's `step`:

native      compiled code, in float32 on the CPU                           compiled.py
narrow      compiled code that multiplies in bfloat16, under autocast      compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN                      operations.py
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py
steps       the plain loop                                                 steps.py

Forms and meaning of the arguments: LayerInput in form.py. Read next: compiled.py.
"""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from weft.nn.kernels import choice
from weft.nn.kernels.cells import compiled, operations, steps
from weft.nn.kernels.cells.form import WITH_C, LayerInput, Operation, Result
from weft.nn.kernels.linear import opened
from weft.probe import exporting

OPERATIONS: Mapping[str, Operation] = {
    "lstm": operations.lstm,
    "coupled": operations.coupled,
    "gru": operations.gru,
    "gru_before": operations.gru_before,
    "elman": partial(operations.elman, torch.rnn_tanh),
    "relu": partial(operations.elman, torch.rnn_relu),
}
"""What computes the cells of choice.OPERATIONS."""


def run_layer(cell: str, given: LayerInput) -> Result:
    """A layer of a cell (form.py)."""
    if exporting():
        return exported(cell, given) if cell in OPERATORS else steps.run(cell, given)
    way = choice.layer_way(cell, given, sharing=opened())
    if way == "operation":
        return OPERATIONS[cell](given)
    if way == "steps":
        return steps.run(cell, given)
    return compiled.run(cell, given, kind=way)  # type: ignore[arg-type]


OPERATORS = ("lstm", "peephole", "coupled", "gru", "gru_before", "elman", "relu")
"""Cells, by their names in the kernels, that ONNX has an operator for."""


def exported(cell: str, given: LayerInput) -> Result:
    """A layer of one of OPERATORS as one node of a graph."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
    size = weight_h.shape[1]
    last_c = h if c is None else c
    inner = torch.zeros_like(bias)
    if cell == "gru" and extra is not None:
        inner = torch.cat([inner[: 2 * size], extra])
    peep = extra if cell == "peephole" and extra is not None else bias.new_zeros(3, size)
    y, h, last_c = recurrent_layer(cell, x, h, last_c, weight_x, weight_h, bias, inner, peep, real.sum(1))
    return y, h, None if c is None else last_c


@torch.library.custom_op("weft::recurrent_layer", mutates_args=())
def recurrent_layer(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The node of a graph that torch exports, without a gradient; export/graphs.py translates it for ONNX.

    Args:
        x: [B, T, D]; h, c: [B, H].
        weight_x: [G H, D]; weight_h: [G H, H]; bias, inner: [G H], the biases of the two products.
        lengths: [B] int64, number of real positions, which come first.

    Returns:
        y [B, T, H], h, c [B, H].
    """
    size, steps_ = h.shape[1], torch.arange(x.shape[1], device=x.device)
    extra = inner[2 * size :] if cell == "gru" else peep if cell == "peephole" else None
    old = c if cell in WITH_C else None
    given = LayerInput(x, h, old, weight_x, weight_h, bias, extra, steps_ < lengths[:, None])
    with torch.no_grad():
        y, h, last = run_layer(cell, given)
    return y, h.clone(), c.clone() if last is None else last.clone()


@recurrent_layer.register_fake
def _(cell: str, x: Tensor, h: Tensor, c: Tensor, *others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape[0], x.shape[1], h.shape[1]), torch.empty_like(h), torch.empty_like(c)
