"""The equation of each gated cell, written once: from pre-activations and previous state to new state.

A cell's `step` (nn/cells) and the plain loop over a layer (cells/steps.py) call these functions; compiled
code has its own in native/equations.h. The fields of a step are the names that a probe shows. Read next:
cells/steps.py; ../cells/lstm.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.nn.activations import activate


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
    """c_t = f c_{t-1} + i c^, h_t = o tanh(c_t), from the pre-activations of the gates.

    Args:
        i, f: pre-activations [B, H] of the input and forget gate; None for a gate that is always open.
        candidate, o: pre-activations [B, H] of c^ and of the output gate.
        c: [B, H] the previous cell state c_{t-1}.

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

    Args:
        gates: [B, 2 H] pre-activations of r and u.
        candidate: [B, H] W_x x + b, the candidate's term in x.
        h: [B, H] the previous state h_{t-1}.
    """
    reset_gate, update_gate = gates.sigmoid().chunk(2, -1)
    candidate = activate(candidate + inner(reset_gate), activation)
    return GRUStep(reset_gate, update_gate, candidate, update_gate * h + (1 - update_gate) * candidate)
