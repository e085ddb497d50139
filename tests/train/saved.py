"""Checkpoints of a toy model whose weights tell which update they are from."""

from pathlib import Path

import torch

from tests.train.toy import Model, Task
from weft.train.checkpoints import Checkpoints, snapshot_of
from weft.train.history import History
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import AdamW
from weft.train.position import Position

HISTORY = History("loss", False)


def made(seed: int) -> tuple[Model, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = Model()
    optimiser = AdamW().build(model)
    model.loss(Task().batch(torch.arange(5).numpy())).mean.backward()
    optimiser.step()
    return model, optimiser


def save(run: Path, update: int, history: History = HISTORY) -> Model:
    model, optimiser = made(update)
    place = Position(update=update)
    Checkpoints(run, print).write(snapshot_of(OwnLoss(model), optimiser, place, history, {"seed": 1}))
    return model


def newest(run: Path) -> tuple[int, list[str]]:
    """The update of the newest checkpoint, whose weights are those of `made`, and the warnings."""
    warnings: list[str] = []
    saved = Checkpoints(run, warnings.append).newest()
    assert saved is not None
    for name, tensor in made(saved.position.update)[0].state_dict().items():
        assert torch.equal(saved.weights[name], tensor)
    return saved.position.update, warnings
