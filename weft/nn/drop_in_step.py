"""One time step of a few rows through a drop-in: what a generator calls for every token.

Without gradients, compiled code computes it; with them, torch's operation, of one row of a GRU or RNN. The
checks only find out whether a call can be served. All others, wrong ones among them, are left to the
drop-in's `forward`, its twin. Read next: drop_in.py; kernels/cells/compiled.py.
"""

import math
from ctypes import c_float
from typing import Any

import torch
from torch import Tensor, nn

from weft import native
from weft.nn.ops import PLAIN_ROWS, forced, lstm
from weft.nn.ops import one_step as step_compiled
from weft.probe import traced

PLAIN = (Tensor, nn.Parameter)
CELLS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "elman", "RNN_RELU": "relu"}  # in the kernels
OPERATIONS = {"GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}


def one_step(module: nn.RNNBase, x: Any, hx: Any, nan: str) -> tuple[Tensor, Any] | None:
    """Output and final state as `forward` gives them, or None where it has to compute them."""
    if not _plain(x) or x.dim() != 3 or torch.is_autocast_enabled("cpu"):
        return None
    rows, steps = x.shape[:2] if module.batch_first else (x.shape[1], x.shape[0])
    if steps != 1 or not 1 <= rows <= PLAIN_ROWS or x.shape[2] != module.input_size:
        return None
    if module.bidirectional or module.proj_size or (module.dropout and module.training):
        return None
    states = None if hx is None else _states(module, rows, hx)
    flat = _weights(module)
    if flat is None or (states is None and hx is not None) or traced():
        return None
    if torch.is_grad_enabled():
        return _trained(module, x, states or _zeros(module, x, rows), flat, nan)
    if native.loaded().library is None or forced("cells") not in ("auto", "native"):
        return None
    each = len(flat) // module.num_layers
    weights = [flat[first : first + each] for first in range(0, len(flat), each)]
    y = x.transpose(0, 1) if module.batch_first else x
    finals: list[list[Tensor]] = []
    for number, layer in enumerate(weights):
        before = states
        if states is not None and len(weights) > 1:
            before = tuple(state[number : number + 1] for state in states)
        y, *final = step_compiled(CELLS[module.mode], y, before, layer)
        finals.append(final)
    if nan == "refuse" and _is_nan(y):
        return None
    after = tuple(finals[0] if len(weights) == 1 else map(torch.cat, zip(*finals, strict=True)))
    return y.transpose(0, 1) if module.batch_first else y, after if len(after) > 1 else after[0]


def _trained(
    module: nn.RNNBase, x: Tensor, states: tuple[Tensor, ...], weights: list[Tensor], nan: str
) -> tuple[Tensor, Any] | None:
    """With gradients; for one row of a GRU or RNN, torch's operation is the fastest way."""
    if x.shape[0] != x.shape[1] or forced("cells") != "auto":
        return None
    if module.mode != "LSTM":
        how = module.bias, module.num_layers, 0.0, True, False, module.batch_first
        y, h = OPERATIONS[module.mode](x, states[0], weights, *how)
        after: Any = h
    elif module.num_layers == 1:
        w_x, w_h, *biases = weights
        bias = biases[0] + biases[1] if biases else w_h.new_zeros(len(w_h))
        y, h, c = lstm(x, states[0][0], states[1][0], w_x, w_h, bias, None)
        y, after = y.clone(), (h[None], c[None])  # the output may be changed in place
    else:
        return None
    return None if nan == "refuse" and _is_nan(h.detach()) else (y, after)


def _is_nan(state: Tensor) -> bool:
    """Whether a row is NaN; NaN in any feature of the input reaches all units of the last layer."""
    one = c_float.from_address(state.data_ptr()).value if state.shape[1] == 1 else state.sum()
    return math.isnan(one)


def _plain(tensor: Any) -> bool:
    return type(tensor) in PLAIN and tensor.dtype is torch.float32 and tensor.is_cpu


def _zeros(module: nn.RNNBase, x: Tensor, rows: int) -> tuple[Tensor, ...]:
    return (x.new_zeros(module.num_layers, rows, module.hidden_size),) * (2 if module.mode == "LSTM" else 1)


def _states(module: nn.RNNBase, rows: int, hx: Any) -> tuple[Tensor, ...] | None:
    """[layers, B, H] each."""
    count, shape = 2 if module.mode == "LSTM" else 1, (module.num_layers, rows, module.hidden_size)
    states = (hx,) if count == 1 else hx
    if type(states) is not tuple or len(states) != count:
        return None
    return states if all(_plain(state) and state.shape == shape for state in states) else None


def _weights(module: nn.RNNBase) -> list[Tensor] | None:
    """Those of all layers in turn, if they are the module's own parameters (and not computed from others)."""
    held = module._parameters
    flat = [held.get(name) for name in module._flat_weights_names]
    if all(_plain(weight) and weight.is_contiguous() for weight in flat):  # type: ignore[union-attr]
        return flat  # type: ignore[return-value]
    return None
