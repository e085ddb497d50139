"""Variational dropout and zoneout in training: the laws hold with numbers from the open generator."""

from functools import partial

import pytest
import torch

from tests.laws.members import (
    READ,
    ROWS,
    SIZE,
    SOURCE,
    SOURCE_LENGTHS,
    close,
    gradcheck,
    normal,
    ready,
    source,
)
from weft import tree
from weft.nn import randomness
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.projected import Projected
from weft.nn.cells.variational import Variational
from weft.nn.cells.zoneout import Zoneout
from weft.nn.decoders.recurrent import Bridge, RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder

INSIDE = {
    "elman": Elman,
    "lstm": LSTM,
    "gru": GRU,
    "before": partial(GRU, reset="before"),
    "projected": partial(Projected, inner=17),
}
inside = pytest.mark.parametrize("cell", INSIDE.values(), ids=INSIDE)


def drawing(seed: int = 1):
    return randomness.drawing(torch.Generator().manual_seed(seed))


def training(make) -> Cell:
    return ready(lambda: make(READ, SIZE)).train()


@inside
def test_law_1_and_3_hold_with_masks_in_the_state(cell) -> None:
    it = training(partial(Variational, cell=cell, rate=0.5, input_rate=0.3))
    x, mask = source()
    with drawing():
        state = it.start(x)
    y, last = it(x, state, mask)
    again = state
    for t in range(SOURCE):
        _, again = it(x[:, t : t + 1], again, mask[:, t : t + 1])
    close(again, last)
    for row, length in enumerate(SOURCE_LENGTHS):
        alone, _ = it(x[row : row + 1, :length], tree.take(state, torch.tensor([row])))
        close(alone, y[row : row + 1, :length])


def test_variational_dropout_is_gal_2016() -> None:
    it = training(partial(Variational, cell=LSTM, rate=0.5, input_rate=0.4))
    x = normal(ROWS, SOURCE, READ)
    with drawing():
        state = it.start(x)
    _, _, kept_x, kept_h = state
    assert set(kept_h.unique().tolist()) == {0.0, 2.0} and 0.0 in kept_x and kept_x.max() < 1.7
    y, _ = it(x, state)
    h, c = state[:2]
    for t in range(SOURCE):
        h, c = it.cell.step(x[:, t] * kept_x, (h * kept_h, c))[1]
        close(y[:, t], h)


def test_a_gru_keeps_what_is_dropped_from_its_products() -> None:
    it = training(partial(Variational, cell=partial(GRU, forget_bias=1e4), rate=0.5))
    it.cell.bias.data[SIZE : 2 * SIZE] = 1e4  # u = 1: h stays, also where it is dropped
    h = normal(ROWS, SIZE)
    x = normal(ROWS, SOURCE, READ)
    with drawing():
        state = it.begin((h,))
    close(it(x, state)[1][0], h)


@inside
@pytest.mark.parametrize("wrap", [Variational, Zoneout])
def test_law_5_gradcheck_while_training(wrap, cell) -> None:
    it = training(partial(wrap, cell=cell, rate=0.4))
    with drawing():
        state = it.start(torch.zeros(2, 1, dtype=torch.float64))

    def outputs(x):
        with drawing():
            return it(x, state)[0]

    gradcheck(it, outputs, normal(2, 3, READ))


@pytest.mark.parametrize("wrap", [Variational, Zoneout])
def test_numbers_come_from_the_open_generator(wrap) -> None:
    it = training(partial(wrap, rate=0.4))
    x = normal(ROWS, SOURCE, READ)

    def run(seed: int) -> torch.Tensor:
        with drawing(seed):
            return it(x, it.start(x))[0]

    torch.manual_seed(1)
    first = run(1)
    torch.manual_seed(2)
    assert torch.equal(first, run(1)) and not torch.equal(first, run(3))
    assert torch.equal(it.eval()(x, it.start(x))[0], it(x, it.start(x))[0])


def test_zoneout_keeps_a_share_of_the_state_as_it_was() -> None:
    it = training(partial(Zoneout, cell=LSTM, rate=0.25))
    x, state = normal(503, READ), (normal(503, SIZE), normal(503, SIZE, seed=2))
    with drawing():
        y, after = it.step(x, state)
    new = it.cell.step(x, state)[1]
    for old, made, got in zip(state, new, after, strict=True):
        stays = got == old
        assert torch.equal(got[~stays], made[~stays])
        assert abs(stays.double().mean().item() - 0.25) < 0.02
    assert torch.equal(y, after[0])


def test_masks_do_not_cross_a_bridge_and_a_decoder_keeps_its_own_for_a_sentence() -> None:
    make = partial(Variational, cell=GRU, rate=0.5)
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(SIZE,), cell=make)).train()
    decoder = ready(lambda: RecurrentDecoder(2, encoder, sizes=(SIZE,), cell=make, enters="both")).train()
    assert not list(Bridge(encoder, ((SIZE,),)).parameters())
    with drawing():
        memory = encoder(*source())
        state = decoder.start(memory, ROWS)
    assert len(memory.carry[0][0]) == 1
    kept = state.layers[0][-1]
    x = normal(ROWS, 3, 2)
    whole, after = decoder(x, state)
    assert torch.equal(after.layers[0][-1], kept) and 0.0 in kept
    for t in range(3):
        y, state = decoder(x[:, t : t + 1], state)
        close(y[:, 0], whole[:, t])
