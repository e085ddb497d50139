"""What a visitor changes in a model to see what happens: units that say nothing, attention that is moved.

Read next: ../diagnose/ablate.py and ../diagnose/steer.py, which change; watching.py, which shows it.
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
from weft.serve.responses import Cell
from weft.serve.served import Served
from weft.text.vocabulary import Word

STEPS = 1000


class Edits(NamedTuple):
    """Changes of one request; none by default."""

    drop: tuple[tuple[int, int], ...] = ()  # number of a cell, unit
    looks: tuple[tuple[int, int], ...] = ()  # step of the search from 1, word of the source from 0


NOTHING = Edits()


def cells_of(run: Served) -> list[Cell]:
    """The recurrent layers of a run, in the order in which `drop` counts them."""
    found = places(run.opened.model)
    titles = titles_of(found)
    return [Cell(titles[place.name], place.cell.size) for place in found]


def edits_of(run: Served, drop: list[list[int]] | None, looks: list[list[int]] | None = None) -> Edits:
    """What a request wants changed.

    Args:
        run: with a model.
        drop: pairs of the number of a cell and a unit.
        looks: pairs of a step from 1 and a word of the source from 0.

    Raises:
        Refusal: cells, units or steps that the run does not have.
    """
    cells = cells_of(run) if drop else []
    for number, unit in drop or ():
        if number >= len(cells):
            raise Refusal(400, f"drop: expected a layer from 0 to {len(cells) - 1}, got {number}")
        cell = cells[number]
        if unit >= cell.size:
            raise Refusal(400, f"drop: expected a unit of {cell.name} from 0 to {cell.size - 1}, got {unit}")
    for step, _ in looks or ():
        if not 1 <= step <= STEPS:
            raise Refusal(400, f"looks: expected a step from 1 to {STEPS}, got {step}")
    return Edits(*(tuple((first, second) for first, second in pairs or ()) for pairs in (drop, looks)))


def without(run: Served, edits: Edits) -> nn.Module:
    """The run's model, with units dropped where that is asked for."""
    model = run.opened.model
    if not edits.drop:
        return model
    names = [place.name for place in places(model)]
    units: dict[str, list[int]] = {}
    for number, unit in edits.drop:
        units.setdefault(names[number], []).append(unit)
    return silenced(model, units)


def moved(model: Generator, edits: Edits, words: Sequence[Word], size: int) -> Generator:
    """The model, looking at the words that were asked for.

    Args:
        model: of the run.
        edits: with the words by number.
        words: of the source.
        size: S, positions of the source.

    Raises:
        Refusal: a word that the text does not have.
    """
    looks: dict[int, Tensor] = {}
    for step, number in edits.looks:
        if number >= len(words):
            raise Refusal(400, f"looks: expected a word from 0 to {len(words) - 1}, got {number}")
        weights = looks.setdefault(step, torch.zeros(size))
        weights[list(words[number].positions)] = 1.0
    return steered(model, {step: one / one.sum() for step, one in looks.items()}) if looks else model
