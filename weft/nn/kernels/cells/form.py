"""The forms of a recurrence: which equation, which activation. Read next: steps.py; triton/layer.py."""

from typing import NamedTuple

from torch import Tensor


class Recurrence(NamedTuple):
    """What is computed.

    kind: elman, lstm, coupled, gru (reset after the product) or gru_before.
    name: the activation of h, or of the candidate.
    peephole: whether the LSTM's gates see their own unit's c.
    """

    kind: str
    name: str = "tanh"
    peephole: bool = False


class Norms(NamedTuple):
    """Gains of a normalised cell.

    gates: of the gates' W_h h, [G H]; of gru_before's r and u, [2 H].
    other: [H], of the LSTM's c, of the candidate's product in gru_before; None in gru.
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
"""By the names that kernels have for cells."""
