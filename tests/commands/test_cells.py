"""Every cell trains and writes from the command line; wrapped ones resume to the bit."""

from pathlib import Path

import pytest

from tests.commands.shell import weft
from weft import rooms
from weft.nn import cells
from weft.nn.cells.cell import Cell

NAMES = sorted(set(rooms.parts(cells, Cell)) - {"projected"})
SHORT = "training.max_updates=2", "training.validate_every=2"
BOTH = "model.encoder.cell={cell}", "model.decoder.cell={cell}"


def named(cell: str) -> list[str]:
    return [change.format(cell=cell) for change in BOTH]


LEADING = ("gru", "lstm", "mingru", "zoneout", "{use: projected, inner: 40}")
"""One of a kind; tests/laws tries every cell."""


@pytest.mark.parametrize(
    "name", [*LEADING, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in LEADING)]
)
def test_a_cell_trains_and_writes(name: str, toy: Path, tmp_path: Path) -> None:
    weft("train", toy, "--run", tmp_path / "run", *SHORT, *named(name), code=0)
    found = weft("predict", tmp_path / "run", stdin=b"alpha beta\ngamma\n")
    assert (found.code, len(found.lines)) == (0, 2), found.err


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_masks_are_drawn_anew_to_the_bit_after_a_stop(workers: int, toy: Path, tmp_path: Path) -> None:
    cell = "{use: zoneout, rate: 0.2, cell: {use: variational, rate: 0.3, cell: {use: gru, reset: before}}}"
    changes = [
        *named(cell),
        "training.validate_every=4",
        "training.accumulate=2",
        f"training.workers={workers}",
    ]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes, "training.max_updates=8").code == 0
    assert weft("train", toy, "--run", broken, *changes, "training.max_updates=4").code == 0
    weft("train", toy, "--run", broken, *changes, "training.max_updates=8", code=0)
    name = "checkpoints/step-00000008/model.safetensors"
    assert (whole / name).read_bytes() == (broken / name).read_bytes()
