"""The equation of each gated cell, written once: from pre-activations and previous state to new state.

A cell's `step` (nn/cells) and the plain loop over a layer (twin.py) call these functions; compiled
code has its own in native/equations.h. The fields of a step are the names that a probe shows. First stands
what the ways of recurrent layers share: the names of cells and the arguments of a layer.
Read next: twin.py, the plain loop; ../cells/lstm.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.nn.activations import activate

ACTIVATIONS = {"elman": "tanh", "relu": "relu"} | {
    f"elman_{name}": name for name in ("sigmoid", "leaky_relu", "elu", "modrelu")
}
"""The activation of each Elman cell by its name in the kernels."""

ELMAN_CELLS = {activation: cell for cell, activation in ACTIVATIONS.items()}
"""The name of an Elman cell in the kernels, by its activation."""

WITH_C = ("lstm", "peephole", "coupled")
"""The cells that also have a cell state; the others are gru (reset gate after the product) and gru_before."""

Result = tuple[Tensor, Tensor, Tensor | None]  # y [B, T, H], zero at padding; h, c [B, H]


class LayerInput(NamedTuple):
    """The arguments of a layer.

    x: [B, T, D]; h, c: [B, H] the initial state, c only for lstm, peephole and coupled.
    weight_x: [G H, D]; weight_h: [G H, H]; bias: [G H].
    extra: peephole [3, H], gru [H] (the candidate's inner bias).
    mask: [B, T] bool, real positions first, or None.
    """

    x: Tensor
    h: Tensor
    c: Tensor | None
    weight_x: Tensor
    weight_h: Tensor
    bias: Tensor
    extra: Tensor | None
    mask: Tensor | None


Operation = Callable[[LayerInput], Result]


class Gates(NamedTuple):
    """The weights of a cell's step, as native/recurrent.h has it."""

    kind: str  # ssru, lstm or gru (reset after the product)
    x: Tensor  # [G H, D], of all gates
    bias: Tensor  # [G H]
    h: Tensor | None = None  # [G H, H]; None for a cell that multiplies its state by no matrix
    bias_n: Tensor | None = None  # [H], of a GRU's W_h h


class LSTMStep(NamedTuple):
    """One step of an LSTM; every tensor is [B, H]; a gate that is switched off is None."""

    candidate: Tensor
    input_gate: Tensor | None
    forget_gate: Tensor | None
    output_gate: Tensor
    cell: Tensor
    hidden: Tensor


def lstm(
    i: Tensor | None,
    f: Tensor | None,
    candidate: Tensor,
    o: Tensor,
    c: Tensor,
    *,
    activation: str = "tanh",
    peep: Callable[[Tensor], Tensor | float] | None = None,
    norm: Callable[[Tensor], Tensor] | None = None,
) -> LSTMStep:
    """c_t = f c_{t-1} + i c^, h_t = o tanh(c_t), from the pre-activations [B, H] of the gates.

    A gate whose pre-activation is None is always open.

    Example:
        >>> zero = torch.zeros(1, 1)
        >>> lstm(zero, zero, zero, zero, torch.ones(1, 1)).cell
        tensor([[0.5000]])
    """
    input_gate = None if i is None else i.sigmoid()
    forget_gate = None if f is None else f.sigmoid()
    candidate = activate(candidate, activation)
    new = candidate if input_gate is None else input_gate * candidate
    c = (c if forget_gate is None else forget_gate * c) + new
    output_gate = (o if peep is None else o + peep(c)).sigmoid()
    hidden = output_gate * torch.tanh(c if norm is None else norm(c))
    return LSTMStep(candidate, input_gate, forget_gate, output_gate, c, hidden)


def coupled(
    f: Tensor,
    candidate: Tensor,
    o: Tensor,
    c: Tensor,
    *,
    activation: str = "tanh",
    norm: Callable[[Tensor], Tensor] | None = None,
) -> LSTMStep:
    """c_t = f c_{t-1} + (1 - f) c^, h_t = o tanh(c_t); arguments as in `lstm`."""
    forget_gate, output_gate = f.sigmoid(), o.sigmoid()
    candidate = activate(candidate, activation)
    c = forget_gate * c + (1 - forget_gate) * candidate
    hidden = output_gate * torch.tanh(c if norm is None else norm(c))
    return LSTMStep(candidate, None, forget_gate, output_gate, c, hidden)


class GRUStep(NamedTuple):
    """One step of a GRU; every tensor is [B, H]."""

    reset_gate: Tensor
    update_gate: Tensor
    candidate: Tensor
    hidden: Tensor


def gru(
    gates: Tensor,
    candidate: Tensor,
    inner: Callable[[Tensor], Tensor],
    h: Tensor,
    *,
    activation: str = "tanh",
) -> GRUStep:
    """h_t = u h_{t-1} + (1 - u) h^, h^ = g(W_x x + inner(r)).

    `gates` are the pre-activations of r and u [B, 2 H], `candidate` is W_x x + b [B, H], and h is h_{t-1}.
    """
    reset_gate, update_gate = gates.sigmoid().chunk(2, -1)
    candidate = activate(candidate + inner(reset_gate), activation)
    return GRUStep(reset_gate, update_gate, candidate, update_gate * h + (1 - update_gate) * candidate)
