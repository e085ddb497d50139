"""What the ways of recurrent layers share: the names of cells and the arguments of a layer.

Read next: steps.py, the plain loop; compiled.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

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
