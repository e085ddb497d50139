"""ONNX's own recurrent operators for the layers of nn/kernels/exported.py.

ONNX stacks an LSTM's gates i, o, f, c and a GRU's z, r, h; ours are i, f, c, o and r, z, h. `sequence_lens`
leaves out padding. Read next: graphs.py.
"""

from collections.abc import Callable
from typing import Any

import onnxscript
import torch

from weft.nn.kernels.exported import recurrent_layer

OPSET = 18

GATES = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "peephole": ("LSTM", (0, 3, 1, 2)),
    "coupled": ("LSTM", (None, 2, 0, 1)),  # i is 1 - f, sigmoid(-z)
    "gru": ("GRU", (1, 0, 2)),
    "gru_before": ("GRU", (1, 0, 2)),
    "elman": ("RNN", (0,)),
    "relu": ("RNN", (0,)),
}
"""The operator of each cell, and the place of each of its gates among ours; None is minus our forget gate."""


def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """The table for torch.onnx.export."""
    return {torch.ops.weft.recurrent_layer.default: _layer}


assert recurrent_layer is not None  # registers the operation


def _layer(
    cell: str,
    x: Any,
    h: Any,
    c: Any,
    weight_x: Any,
    weight_h: Any,
    bias: Any,
    inner: Any,
    peep: Any,
    lengths: Any,
) -> Any:
    op: Any = onnxscript.opset18
    kind, order = GATES[cell]
    size = int(h.shape[1])
    ours = int(weight_h.shape[0]) // size

    def gate(stacked: Any, place: int | None) -> Any:
        parts = op.Split(stacked, axis=0, num_outputs=ours) if ours > 1 else (stacked,)
        return op.Neg(parts[0]) if place is None else parts[place]

    def stack(stacked: Any) -> Any:
        return op.Concat(*(gate(stacked, place) for place in order), axis=0)

    def first(value: Any, axis: int = 0) -> Any:
        return op.Unsqueeze(value, op.Constant(value_ints=[axis]))

    w, r = first(stack(weight_x)), first(stack(weight_h))
    biases = first(op.Concat(stack(bias), stack(inner), axis=0))
    steps = op.Transpose(x, perm=[1, 0, 2])
    count = op.Cast(lengths, to=6)  # int32
    start = first(h)
    if kind == "LSTM":
        extra = []
        if cell == "peephole":
            p_i, p_f, p_o = op.Split(peep, axis=0, num_outputs=3)
            extra = [op.Concat(p_i, p_o, p_f, axis=1)]
        y, last, cell_state = op.LSTM(steps, w, r, biases, count, start, first(c), *extra, hidden_size=size)
        last_c = op.Squeeze(cell_state, op.Constant(value_ints=[0]))
    elif kind == "GRU":
        after = 0 if cell == "gru_before" else 1
        y, last = op.GRU(steps, w, r, biases, count, start, hidden_size=size, linear_before_reset=after)
        last_c = op.Identity(c)
    else:
        activation = {"elman": "Tanh", "relu": "Relu"}[cell]
        y, last = op.RNN(steps, w, r, biases, count, start, hidden_size=size, activations=[activation])
        last_c = op.Identity(c)
    rows = op.Transpose(op.Squeeze(y, op.Constant(value_ints=[1])), perm=[1, 0, 2])
    return rows, op.Squeeze(last, op.Constant(value_ints=[0])), last_c
