"""Changes that a visitor of the page makes to a model: units set to zero, attention moved to other words.

Read next: ../diagnose/ablate.py and ../diagnose/steer.py, which change the model; watching.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.diagnose.ablate import silenced
from weft.diagnose.recorded import places, titles_of
from weft.diagnose.steer import steered
from weft.models import Generator
from weft.serve.limits import Refusal
from weft.serve.schemas import Cell
from weft.serve.served import ServedRun
from weft.text.vocabulary import Word

STEPS = 1000


class ModelEdits(NamedTuple):
    """Changes in one request; none by default."""

    drop: tuple[tuple[int, int], ...] = ()  # (number of a cell, unit), both from 0
    looks: tuple[tuple[int, int], ...] = ()  # (step of the search from 1, source word from 0)


NOTHING = ModelEdits()


def cells_of(run: ServedRun) -> list[Cell]:
    """The recurrent layers of a run, in the order that `drop` numbers them."""
    found = places(run.opened.model)
    titles = titles_of(found)
    return [Cell(name=titles[place.name], size=place.cell.size) for place in found]


def edits_of(
    run: ServedRun, drop: list[list[int]] | None, looks: list[list[int]] | None = None
) -> ModelEdits:
    """The changes that a request contains, checked.

    Args:
        run: a run with a model.
        drop: pairs (number of a cell, unit).
        looks: pairs (step from 1, source word from 0).

    Raises:
        Refusal: the run has no such cell, unit or step.
    """
    cells = cells_of(run) if drop else []
    for number, unit in drop or ():
        if number >= len(cells):
            raise Refusal(404, f"drop: expected a layer from 0 to {len(cells) - 1}, got {number}")
        name, size = cells[number]["name"], cells[number]["size"]
        if unit >= size:
            raise Refusal(404, f"drop: expected a unit of {name} from 0 to {size - 1}, got {unit}")
    for step, _ in looks or ():
        if not 1 <= step <= STEPS:
            raise Refusal(404, f"looks: expected a step from 1 to {STEPS}, got {step}")
    return ModelEdits(*(tuple((first, second) for first, second in pairs or ()) for pairs in (drop, looks)))


def without(run: ServedRun, edits: ModelEdits) -> nn.Module:
    """The run's model, or a copy with the dropped units set to zero."""
    model = run.opened.model
    if not edits.drop:
        return model
    names = [place.name for place in places(model)]
    units: dict[str, list[int]] = {}
    for number, unit in edits.drop:
        units.setdefault(names[number], []).append(unit)
    return silenced(model, units)


def moved(model: Generator, edits: ModelEdits, words: Sequence[Word], size: int) -> Generator:
    """The model, or a copy whose attention is moved to the requested words.

    Args:
        model: the model of the run.
        edits: the changes.
        words: the source words.
        size: S, number of source positions.

    Raises:
        Refusal: the text has no such word.
    """
    looks: dict[int, Tensor] = {}
    for step, number in edits.looks:
        if number >= len(words):
            raise Refusal(404, f"looks: expected a word from 0 to {len(words) - 1}, got {number}")
        weights = looks.setdefault(step, torch.zeros(size))
        weights[list(words[number].positions)] = 1.0
    return steered(model, {step: one / one.sum() for step, one in looks.items()}) if looks else model
