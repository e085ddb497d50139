"""The form of a recurrence: its equation and its activation; and the arguments of a layer.

Read next: steps.py; triton/layer.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Recurrence(NamedTuple):
    """The equation to compute.

    kind: elman, lstm, coupled, gru (reset gate after the product) or gru_before.
    name: activation of h (elman) or of the candidate.
    peephole: whether the LSTM's gates also read their own unit's c.
    """

    kind: str
    name: str = "tanh"
    peephole: bool = False


class Norms(NamedTuple):
    """Gains of a layer-normalised cell.

    gates: gains of the gates' W_h h, [G H]; for gru_before those of r and u, [2 H].
    other: [H], gains of the LSTM's c, or of the candidate's product in gru_before; None for gru.
    """

    gates: Tensor
    other: Tensor | None = None


ACTIVATIONS = {"elman": "tanh", "relu": "relu"} | {
    f"elman_{name}": name for name in ("sigmoid", "leaky_relu", "elu", "modrelu")
}

FORMS = {
    "lstm": Recurrence("lstm"),
    "peephole": Recurrence("lstm", peephole=True),
    "coupled": Recurrence("coupled"),
    "gru": Recurrence("gru"),
    "gru_before": Recurrence("gru_before"),
} | {cell: Recurrence("elman", name) for cell, name in ACTIVATIONS.items()}
"""The form of each cell by its name in the kernels."""

Result = tuple[Tensor, Tensor, Tensor | None]  # y [B, T, H], h, c [B, H]
Operation = Callable[..., Result]


class Given(NamedTuple):
    """The arguments of a layer; see compiled.run."""

    x: Tensor
    h: Tensor
    c: Tensor | None
    weight_x: Tensor
    weight_h: Tensor
    bias: Tensor
    extra: Tensor | None
    mask: Tensor | None

    def tensors(self) -> list[Tensor]:
        """All tensors except the mask."""
        return [tensor for tensor in self[:-1] if tensor is not None]


class Gates(NamedTuple):
    """The weights of a cell's step, as native/recurrent.h has it."""

    kind: str  # ssru, lstm or gru (reset after the product)
    x: Tensor  # [G H, D], of all gates
    bias: Tensor  # [G H]
    h: Tensor | None = None  # [G H, H]; None for a cell that multiplies its state by no matrix
    bias_n: Tensor | None = None  # [H], of a GRU's W_h h
