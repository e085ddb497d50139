"""From the tensors of other toolkits to those of a run's model.

A toolkit's file says for each of our tensors which of theirs it is made from (an `Origin`).
Read next: ../names.py, more origins; vocabularies.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.importing.checkpoint import Origins, TensorOrigin, complete
from weft.importing.writing import NEVER

SOURCE, TARGET = "source_embed.table.weight", "embed.table.weight"
LOGITS = ("head.weight", "head.bias")


class CellTensors(NamedTuple):
    """Names of the tensors of a torch.nn.LSTM or GRU, or of a cell of them."""

    weight_x: str
    weight_h: str
    bias_x: str
    bias_h: str


def layer_of(prefix: str, layer: int, *, backward: bool = False) -> CellTensors:
    """The names of one layer of a torch.nn.LSTM or GRU."""
    end = f"_l{layer}{'_reverse' if backward else ''}"
    return CellTensors(
        *(f"{prefix}.{name}{end}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    )


def cell_of(prefix: str) -> CellTensors:
    """The names of a torch.nn.LSTMCell or GRUCell."""
    return CellTensors(*(f"{prefix}.{name}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))


def recurrent(ours: str, theirs: CellTensors, kind: str) -> dict[str, TensorOrigin]:
    """The tensors of our LSTM or GRU (`kind`: lstm or gru) from torch's.

    The reset gate of a GRU also multiplies the candidate's recurrent bias, so that one has its own place.
    """
    biases = (theirs.bias_x, theirs.bias_h)
    found = {
        f"{ours}.weight_x": TensorOrigin((theirs.weight_x,), _same),
        f"{ours}.weight_h": TensorOrigin((theirs.weight_h,), _same),
    }
    if kind == "lstm":
        return found | {f"{ours}.bias": TensorOrigin(biases, torch.add)}

    def gates(bias_x: Tensor, bias_h: Tensor) -> Tensor:
        return bias_x + torch.cat([bias_h[: len(bias_h) * 2 // 3], torch.zeros(len(bias_h) // 3)])

    return found | {
        f"{ours}.bias": TensorOrigin(biases, gates),
        f"{ours}.bias_n": TensorOrigin((theirs.bias_h,), lambda bias: bias[len(bias) * 2 // 3 :]),
    }


def zeros(ours: str, size: int) -> dict[str, TensorOrigin]:
    """A bias that the toolkit does not have."""
    return {ours: TensorOrigin((), lambda: torch.zeros(size))}


def mapped(
    tensors: Mapping[str, Tensor], origins: Origins, place: str, *, spare: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Our tensors by name.

    Args:
        tensors: the toolkit's.
        origins: the source of each of ours.
        place: of the checkpoint, for errors.
        spare: ends of the names of tensors that may be there but are not needed.

    Raises:
        CheckpointError: tensors are missing, left over, or do not fit together.
    """
    complete(tensors, origins, place, spare=spare, hint="do these settings belong to it?")
    found = {}
    for name, origin in origins.items():
        try:
            found[name] = origin.make(*(tensors[each] for each in origin.names))
        except (RuntimeError, IndexError, ValueError) as error:
            sizes = ", ".join(f"{each} {list(tensors[each].shape)}" for each in origin.names)
            raise CheckpointError(
                f"{place}: {sizes} cannot become {name}; do these settings belong to it?"
            ) from error
    return found


def renumbered(
    state: Mapping[str, Tensor], source: Sequence[int], target: Sequence[int], place: str
) -> dict[str, Tensor]:
    """Reorder the rows of the tables of both sides; symbols that the model lacks are never chosen.

    Args:
        state: of the model, numbered like the checkpoint, whose logits have a bias.
        source, target: the original number of each of Weft's numbers; -1 for a symbol that it lacks.
        place: of the checkpoint, for errors.

    Raises:
        CheckpointError: a table does not have a row for each token of its vocabulary.
    """
    found = dict(state)
    orders = {SOURCE: source, **dict.fromkeys((TARGET, *LOGITS), target)}
    for name, order in orders.items():
        if max(order) + 1 != len(state[name]):
            side = "source" if name == SOURCE else "target"
            raise CheckpointError(
                f"{place}: has {len(state[name]):,} {side} tokens, the vocabulary {max(order) + 1:,}; "
                "does it belong to this model?"
            )
        rows = torch.tensor(order)
        found[name] = state[name][torch.where(rows < 0, rows[3], rows)]
    twice = [place for place in range(4) if target[place] < 0 or target[place] in target[place + 1 : 4]]
    found["head.bias"] = found["head.bias"].clone()
    found["head.bias"][twice] = NEVER
    return found


def _same(tensor: Tensor) -> Tensor:
    return tensor
