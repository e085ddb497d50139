"""Every part of every folder, built for tests: found by its file, constructed by its signature.

A new file in weft/nn/cells, scores, encoders, decoders or heads is found here and tested by every law.
Its constructor gets the arguments of the base class (in_size, size, encoder, ...) and those of SMALL
that it accepts. If a part has settings that change the equation, add a line to variants.py.

There is one test per variant: it runs all laws and its error names those that are broken. `make test` runs
the leading variants, `make test-all` every variant.
Inputs and comparisons are those of weft/testing, which checks parts outside Weft. Read next: test_cells.py.
"""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.variants import VARIANTS
from weft import masks, rooms
from weft.nn import cells, decoders, encoders, heads, pools, scores
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.heads.head import Head
from weft.nn.pools import Pool
from weft.nn.scores import Score

# the inputs and comparisons of weft.testing, for every test of laws
from weft.testing.scores import needs_equal_sizes as needs_equal_sizes
from weft.testing.values import READ as READ
from weft.testing.values import ROWS as ROWS
from weft.testing.values import SIZE as SIZE
from weft.testing.values import SOURCE as SOURCE
from weft.testing.values import SOURCE_LENGTHS as SOURCE_LENGTHS
from weft.testing.values import TARGET as TARGET
from weft.testing.values import close as close
from weft.testing.values import gradcheck as gradcheck
from weft.testing.values import keeps as keeps
from weft.testing.values import loud as loud
from weft.testing.values import near as near
from weft.testing.values import normal as normal
from weft.testing.values import ready as ready
from weft.testing.values import source as source

# Different primes, so that confused axes raise errors; sizes of attention heads are products of two.
WRITE, CLASSES = 2, 17  # and those of weft/testing/values.py
TARGET_LENGTHS = (11, 1, 5, 8, 3)

SMALL: dict[str, Any] = {"num_heads": 2, "inner": 19, "num_layers": 2, "dropout": 0.0, "max_length": 40}

Make = Callable[..., Any]


def found(room: Any, contract: type, **settings: Any) -> dict[str, Make]:
    """Every variant of every part in a folder, by the name used as test id."""
    name = room.__name__.rsplit(".", 1)[1]
    makes: dict[str, Make] = {}
    for part, kind in rooms.parts(room, contract).items():
        known = inspect.signature(kind).parameters
        for variant in VARIANTS.get(f"{name}.{part}", [{}]):
            given = {key: value for key, value in {**SMALL, **settings}.items() if key in known} | variant
            shown = ",".join(_shown(value) for value in variant.values())
            if f"{part}({shown})" in makes:  # the same value of another setting
                shown = ",".join(f"{key}={_shown(value)}" for key, value in variant.items())
            assert f"{part}({shown})" not in makes
            makes[f"{part}({shown})"] = partial(kind, **given)
    return makes


def _shown(value: Any) -> str:
    if isinstance(value, partial):
        return f"{_shown(value.func)}:{','.join(map(_shown, value.keywords.values()))}"
    return value.__name__.lower() if inspect.isclass(value) else str(value).replace(" ", "")


CELLS: dict[str, Make] = found(cells, Cell)
SCORES: dict[str, Make] = found(scores, Score)
ENCODERS: dict[str, Make] = found(encoders, Encoder)
DECODERS: dict[str, Make] = found(decoders, Decoder)
HEADS: dict[str, Make] = found(heads, Head, num_classes=CLASSES)
POOLS: dict[str, Make] = found(pools, Pool)


def one_of_each(members: dict[str, Make]) -> list[str]:
    """The first variant of each part, and both reset modes of the GRU, whose loops differ."""
    parts = {name.split("(")[0]: name for name in reversed(members)}
    return [name for name in members if name in parts.values() or name == "gru(before)"]


# Beside the first variant of each file, what is built in another way: two directions, a state of matrices, a
# window of the past, input feeding, several layers.
ALSO = {
    "recurrent((13,5),True)",
    "recurrent((13,),both,True)",
    "recurrent((5,13),7,summary,both,True)",
    "recurrent/mlstm(2,3,5)",
    "bag(additive)",
}


def leading(members: dict[str, Make]) -> list[str]:
    """The variants that `make test` runs through all laws."""
    first = one_of_each(members)
    return [name for name in members if name in ALSO or (name in first and "/" not in name)]


def cases(members: dict[str, Make], fast: Collection[str] | None = None) -> pytest.MarkDecorator:
    """A test for each member; those outside `fast` (by default the leading ones) are slow."""
    fast = leading(members) if fast is None else fast
    given = [
        pytest.param(make, id=name, marks=[] if name in fast else [pytest.mark.slow])
        for name, make in members.items()
    ]
    return pytest.mark.parametrize("make", given)


def others(members: dict[str, Make]) -> pytest.MarkDecorator:
    """A test for each member that is not leading."""
    rest = {name: make for name, make in members.items() if name not in leading(members)}
    return pytest.mark.parametrize("make", rest.values(), ids=rest)


def _with_cells_and_scores() -> None:
    recurrent_encoder = rooms.find(encoders, Encoder, "recurrent")
    recurrent_decoder = rooms.find(decoders, Decoder, "recurrent")
    for name in one_of_each(CELLS):
        cell = CELLS[name]
        ENCODERS[f"recurrent/{name}"] = partial(
            recurrent_encoder, sizes=(SIZE, 5), cell=cell, bidirectional=True
        )
        # the output of Mamba grows with the fifth power of its input, that of RWKV-7 with the third: they
        # explode when they are fed back
        fed = partial(Block, cell=cell) if name.startswith(("mamba", "rwkv7")) else cell
        DECODERS[f"recurrent/{name}"] = partial(
            recurrent_decoder, sizes=(3, SIZE), cell=fed, enters="both", input_feeding=True
        )
    for name, score in SCORES.items():
        keys = {"key_size": SIZE} if needs_equal_sizes(score) else {}
        DECODERS[f"recurrent/{name}"] = partial(recurrent_decoder, sizes=(SIZE,), score=score, **keys)


_with_cells_and_scores()


def target() -> tuple[Tensor, Tensor]:
    """x [B, T, D] with large values as padding, and its mask."""
    mask = masks.from_lengths(torch.tensor(TARGET_LENGTHS), TARGET)
    return loud(normal(ROWS, TARGET, WRITE, seed=2), mask), mask
