"""One time step of a few rows through a drop-in, without gradients: what a generator calls for every token.

It checks only whether it can serve a call. All others, wrong ones among them, are left to the drop-in's
`forward`, its twin. Read next: drop_in_layers.py; kernels/cells/single.py.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from weft.nn.kernels import choice
from weft.nn.kernels.cells.single import MOST_ROWS, able, single

PLAIN = (Tensor, nn.Parameter)
NAMES = ("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l")


def one_step(module: nn.RNNBase, cell: str, x: Any, hx: Any, nan: str) -> tuple[Tensor, Any] | None:
    """Output and final state as `forward` gives them, or None where it has to compute them.

    Args:
        module: a drop-in.
        cell: its name in the kernels.
        x, hx: the arguments of `forward`.
        nan: the drop-in's setting; with "refuse", None if the final state is not a number.
    """
    if torch.is_grad_enabled() or not _plain(x) or x.dim() != 3 or torch.is_autocast_enabled("cpu"):
        return None
    rows, steps = x.shape[:2] if module.batch_first else (x.shape[1], x.shape[0])
    if steps != 1 or not 1 <= rows <= MOST_ROWS or x.shape[2] != module.input_size:
        return None
    if module.bidirectional or module.proj_size or (module.dropout and module.training):
        return None
    states = _states(module, x, rows, hx)
    weights = _weights(module)
    if states is None or weights is None or choice.traced() or not able():
        return None
    y = x.transpose(0, 1) if module.batch_first else x
    finals: list[tuple[Tensor, ...]] = []
    for number, layer in enumerate(weights):
        before = states if len(weights) == 1 else tuple(state[number : number + 1] for state in states)
        finals.append(single(cell, y, before, layer))
        y = finals[-1][0]
    if nan == "refuse" and math.isnan(y.sum()):  # NaN in the input reaches the last layer
        return None
    if len(weights) == 1:
        after = (y.clone(), *finals[0][1:])  # the output may be changed in place
    else:
        after = tuple(torch.cat(part) for part in zip(*finals, strict=True))
    return y.transpose(0, 1) if module.batch_first else y, after if len(after) > 1 else after[0]


def _plain(tensor: Any) -> bool:
    return type(tensor) in PLAIN and tensor.dtype is torch.float32 and tensor.is_cpu


def _states(module: nn.RNNBase, x: Tensor, rows: int, hx: Any) -> tuple[Tensor, ...] | None:
    """[layers, B, H] each."""
    count, shape = 2 if module.mode == "LSTM" else 1, (module.num_layers, rows, module.hidden_size)
    if hx is None:
        return (x.new_zeros(shape),) * count
    states = (hx,) if count == 1 else hx
    if type(states) is not tuple or len(states) != count:
        return None
    return states if all(_plain(state) and state.shape == shape for state in states) else None


def _weights(module: nn.RNNBase) -> list[list[Tensor]] | None:
    """Those of each layer, if they are the module's own parameters (and not computed from others)."""
    names, held, layers = NAMES if module.bias else NAMES[:2], module._parameters, []
    for number in range(module.num_layers):
        layer = []
        for name in names:
            weight = held.get(f"{name}{number}")
            if weight is None or not _plain(weight) or not weight.is_contiguous():
                return None
            layer.append(weight)
        layers.append(layer)
    return layers  # type: ignore[return-value]
