"""What a visitor changes in a model to see what happens: units that say nothing, attention that is moved.

Read next: ../diagnose/ablate.py and ../diagnose/steer.py, which change; watching.py, which shows it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.diagnose.ablate import silenced
from weft.diagnose.recorded import places, titles_of
from weft.diagnose.steer import steered
from weft.models import Generator
from weft.serve.limits import Refusal, kind_of
from weft.serve.served import Served
from weft.text.vocabulary import Word

MOST = 64
"""Changes of a kind in one request."""

STEPS = 1000


class Edits(NamedTuple):
    """Changes of one request; none by default."""

    drop: tuple[tuple[int, int], ...] = ()  # number of a cell, unit
    looks: tuple[tuple[int, int], ...] = ()  # step of the search from 1, word of the source from 0


NOTHING = Edits()


def cells_of(run: Served) -> list[dict[str, Any]]:
    """The recurrent layers of a run, in the order in which `drop` counts them."""
    found = places(run.opened.model)
    titles = titles_of(found)
    return [{"name": titles[place.name], "size": place.cell.size} for place in found]


def edits_of(run: Served, given: dict[str, Any]) -> Edits:
    """What a request wants changed.

    Raises:
        Refusal: not lists of pairs of numbers, or cells and units that the run does not have.
    """
    drop, looks = _pairs(given.get("drop"), "drop"), _pairs(given.get("looks"), "looks")
    cells = cells_of(run) if drop else []
    for number, unit in drop:
        if not 0 <= number < len(cells):
            raise Refusal(400, f"drop: expected a layer from 0 to {len(cells) - 1}, got {number}")
        size = cells[number]["size"]
        if not 0 <= unit < size:
            raise Refusal(
                400, f"drop: expected a unit of {cells[number]['name']} from 0 to {size - 1}, got {unit}"
            )
    for step, word in looks:
        if not 1 <= step <= STEPS or word < 0:
            raise Refusal(400, f"looks: expected a step from 1 to {STEPS} and a word of at least 0")
    return Edits(tuple(drop), tuple(looks))


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


def _pairs(value: Any, name: str) -> list[tuple[int, int]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Refusal(400, f"{name}: expected a list of pairs of numbers, got {kind_of(value)}")
    if len(value) > MOST:
        raise Refusal(400, f"{name}: expected at most {MOST} changes at once, got {len(value)}")
    for pair in value:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(one, int) and not isinstance(one, bool) for one in pair)
            or any(abs(one) > 10**9 for one in pair)
        ):
            raise Refusal(400, f"{name}: expected pairs of whole numbers such as [[0, 17]]")
    return [(pair[0], pair[1]) for pair in value]
