"""Copy the contents of a checkpoint in memory, so that it can be written while training continues.

Read next: saving.py, which writes it; checkpoints.py.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.store import files, jsonfile, weights
from weft.store.digests import Fits
from weft.train import carry, optimiser_state
from weft.train.history import History
from weft.train.objectives.objective import together
from weft.train.parts import Shard, name
from weft.train.position import Position
from weft.train.saved import FORMAT
from weft.train.sharding import is_sharded, local
from weft.tree import State
from weft.version import __version__

MODEL, OPTIMISER = "model", "optimiser"
STATE, CARRIED, OBJECTIVE = "state.json", "carried.safetensors", "objective.safetensors"


class Snapshot(NamedTuple):
    """A checkpoint in memory, or a process's part of one; training does not change it."""

    update: int
    tensors: dict[str, weights.CopiedWeights]
    """Tensors by the name of their file."""

    state: dict[str, Any] | None
    """Contents of state.json; None except in the first process."""

    part: Shard

    def contents(self, fits: Fits) -> dict[str, bytes]:
        """The contents of the files, by name; the model's says what the weights belong to."""
        found = {
            key: weights.pack(tensors, update=str(self.update), **_belonging(key, fits))
            for key, tensors in self.tensors.items()
        }
        return found if self.state is None else found | {STATE: files.to_json(self.state)}


def taken(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    position: Position,
    history: History,
    about: dict[str, Any],
    carried: State = None,
    own: nn.Module | None = None,
    part: Shard = Shard(),  # noqa: B008  never changed
) -> Snapshot:
    """Make a snapshot of a training.

    Args:
        model: model, for its weights.
        optimiser: optimiser, for its state.
        position: current position.
        history: validations so far.
        about: settings that a resumed run must share.
        carried: state for the next batch, if one is carried.
        own: the objective's own module, if any.
        part: this process's part, if parameters are sharded.
    """
    remembered = optimiser_state.collect(together(model, own), optimiser)
    stored: dict[str, Mapping[str, Tensor]] = {MODEL: model.state_dict(), OPTIMISER: remembered.tensors}
    tensors = {name(stem, part): weights.copied(_mine(whole, part)) for stem, whole in stored.items()}
    if carried is not None:
        tensors[CARRIED] = weights.copied(carry.named(carried))
    if own is not None:
        tensors[OBJECTIVE] = weights.copied(own.state_dict())
    if part.rank:
        return Snapshot(position.update, tensors, None, part)
    state = {
        "format": FORMAT,
        "weft": __version__,
        "position": asdict(position),
        "validations": history.to_json(),
        "optimiser": remembered.numbers,
        "about": about,
    }
    if part.of > 1:
        state["parts"] = part.of
        state["cut"] = {
            stem: [key for key, one in whole.items() if is_sharded(one)] for stem, whole in stored.items()
        }
    return Snapshot(position.update, tensors, state, part)


def _belonging(key: str, fits: Fits) -> dict[str, Any]:
    return {"fits": jsonfile.plain(fits)} if key.startswith((f"{MODEL}.", f"{MODEL}-")) else {}


def _mine(tensors: Mapping[str, Tensor], part: Shard) -> dict[str, Tensor]:
    """This process's rows; unsharded tensors belong to the first process."""
    return {key: local(one) for key, one in tensors.items() if is_sharded(one) or not part.rank}
