"""Layers of torch's shape: each equals its cell stepped by hand, and a recipe's encoder with that cell."""

import copy
import io
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from weft import masks, nn
from weft.errors import ConfigError, ShapeError, WeftError
from weft.nn import RecurrentDecoder, RecurrentEncoder, RecurrentLayer, Stack, cells, layer_of
from weft.nn.cells.cell import Cell
from weft.tree import leaves

D, H, ROWS, STEPS = 7, 8, 3, 5
SETTINGS: dict[str, dict[str, Any]] = {"Projected": {"inner": 11}}
KINDS: dict[str, type[RecurrentLayer]] = {
    **{name: getattr(nn, name) for name in dir(nn) if isinstance(getattr(nn, name), type)},
    "LSTM of cells": layer_of(cells.LSTM),
    "GRU of cells": layer_of(cells.GRU),
}
KINDS = {
    name: kind
    for name, kind in KINDS.items()
    if issubclass(kind, RecurrentLayer) and kind is not RecurrentLayer
}


def made(name: str, **settings: Any) -> RecurrentLayer:
    torch.manual_seed(3)
    return KINDS[name](D, H, **SETTINGS.get(name, {}), **settings).double().eval()


def inputs(steps: int = STEPS) -> Tensor:
    return torch.randn(ROWS, steps, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def by_hand(cell: Any, x: Tensor) -> Tensor:
    state, ys = cell.start(x), []
    for one in x.unbind(1):
        y, state = cell.step(one, state)
        ys.append(y)
    return torch.stack(ys, 1)


def close(first: Any, second: Any) -> None:
    for a, b in zip(leaves(first), leaves(second), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


each = pytest.mark.parametrize("name", KINDS)


def test_every_cell_has_a_layer_under_its_name() -> None:
    found = {one for one in dir(cells) if issubclass(getattr(cells, one), Cell)} - {"Cell", "MatrixCell"}
    assert found - {"LSTM", "GRU"} == {name for name in KINDS if " of cells" not in name}
    assert all(KINDS[name].cell_class is getattr(cells, name) for name in found - {"LSTM", "GRU"})


@each
def test_a_layer_equals_its_cell_stepped_by_hand(name: str) -> None:
    layer, x = made(name), inputs()
    y, state = layer(x)
    assert y.shape == (ROWS, STEPS, H) and len(state) == 1
    close(y, by_hand(layer.stack.forwards[0], x))
    close(layer(x[:, :1])[0][:, 0], layer.step(x[:, 0], layer.start(x))[0])
    assert repr(layer).startswith(f"{KINDS[name].__name__}({D}, {H}")


@each
def test_layers_are_stacked_and_the_state_is_carried(name: str) -> None:
    layer, x = made(name, num_layers=2), inputs()
    below = x
    for cell in layer.stack.forwards:
        below = by_hand(cell, below)
    whole, final = layer(x)
    close(whole, below)
    first, state = layer(x[:, :2])
    second, state = layer(x[:, 2:], state)
    close((torch.cat([first, second], 1), state), (whole, final))


@each
def test_a_mask_is_a_shorter_input_and_two_directions_are_two_layers(name: str) -> None:
    layer, x = made(name, bidirectional=True), inputs()
    lengths = torch.tensor([5, 2, 4])
    y, state = layer(x, mask=masks.from_lengths(lengths, STEPS))
    for row, length in enumerate(lengths.tolist()):
        alone, alone_state = layer(x[row : row + 1, :length])
        close(
            (y[row, :length], tuple(leaf[row] for leaf in leaves(state))),
            (alone[0], tuple(leaf[0] for leaf in leaves(alone_state))),
        )
        assert not y[row, length:].any()
    (forward,), (backward,) = layer.stack.forwards, layer.stack.backwards
    close(layer(x)[0], torch.cat([by_hand(forward, x), by_hand(backward, x.flip(1)).flip(1)], -1))
    again, _ = layer(x, layer.start(x))  # a state for both directions
    close(again, layer(x)[0])


@each
def test_a_layer_equals_a_recipes_encoder_and_decoder_with_that_cell(name: str) -> None:
    layer, x = made(name, num_layers=2, bidirectional=False), inputs()
    cell = partial(KINDS[name].cell_class, **SETTINGS.get(name, {}))
    inside = (
        "num_layers" in layer.shown_settings and len(layer.stack.forwards) == 1
    )  # a cell with its own layers
    sizes = (H,) if inside else (H, H)
    encoder = RecurrentEncoder(D, sizes=sizes, cell=cell).double().eval()
    decoder = RecurrentDecoder(D, sizes=sizes, cell=cell).double().eval()
    mask = masks.from_lengths(torch.tensor([5, 2, 4]), STEPS)
    for model in (encoder, decoder):
        model.stack.load_state_dict(layer.stack.state_dict())
    y, state = layer(x, mask=mask)
    close(y, encoder(x, mask).states)
    close(
        (y, state), (lambda found: (found[0], found[1].layers))(decoder(x, decoder.start(None, ROWS), mask))
    )


def test_time_first_is_asked_for_and_the_rest_has_rows_first() -> None:
    rows, steps = nn.MinGRU(D, H), nn.MinGRU(D, H, batch_first=False)
    steps.load_state_dict(rows.state_dict())
    x, mask = inputs().float(), masks.from_lengths(torch.tensor([5, 2, 4]), STEPS)
    (y, state), (z, final) = rows(x, mask=mask), steps(x.transpose(0, 1), mask=mask)
    close((y, state), (z.transpose(0, 1), final))
    assert steps.step(x[:, 0], steps.start(x))[0].shape == (ROWS, H)
    with pytest.raises(ShapeError, match=r"MinGRU: expected x of shape \[steps, rows, 7\], got \[3, 5, 6\]"):
        steps(x[..., 1:])


def test_dropout_is_between_layers_alone() -> None:
    layer, x = nn.SRU(D, H, num_layers=2, dropout=0.9), inputs().float()
    (y, state), (whole, final) = layer(x), layer.eval()(x)
    close(state[0], final[0])
    assert not torch.allclose(y, whole)
    one = nn.SRU(D, H, dropout=0.999)
    close(one(x)[0], one.eval()(x)[0])


def test_a_layer_shows_its_sizes_is_copied_saved_and_moved() -> None:
    layer = nn.SRU(
        input_size=D, hidden_size=H, num_layers=2, bidirectional=True, peephole=True, dtype=torch.float64
    )
    assert repr(layer) == "SRU(7, 8, num_layers=2, bidirectional=True, peephole=True)"
    assert repr(torch.nn.Sequential(nn.Mamba(8, 4))) == "Sequential(\n  (0): Mamba(8, 4)\n)"
    saved = io.BytesIO()
    torch.save(layer, saved)
    saved.seek(0)
    x = inputs()
    for same in (copy.deepcopy(layer), torch.load(saved, weights_only=False)):
        close(same(x), layer(x))
    inside: Any = nn.RWKV7Layers(D, H, num_layers=3).stack.forwards[0]
    assert len(inside.layers) == 3


@pytest.mark.parametrize("make", [nn.SRU, partial(nn.SRU, peephole=True), cells.SRU])
def test_where_a_cell_is_meant_a_layer_stands_for_its_cell(make: Any) -> None:
    for stack in (Stack(D, (H,), cell=make), RecurrentEncoder(D, sizes=(H,), cell=make).stack):
        assert type(stack.forwards[0]) is cells.SRU
    assert type(cells.Zoneout(D, H, cell=make).cell) is cells.SRU


def test_code_that_used_a_name_of_weft_nn_as_a_cell_still_works() -> None:
    cell, x = made("SRU"), inputs()
    state = cell.start(x[:, 0])
    y, after = cell.step(x[:, 0], state)
    z, final = cell(x, state)
    close(y, z[:, 0])
    close(cell(x[:, 1:], after), (z[:, 1:], final))


X = torch.randn(ROWS, STEPS, D)
NAN = X * float("nan")
LAYER: Any = nn.SRU
STACK: Any = Stack
SRU, ALONE = LAYER(D, H), "expected a cell, such as the class weft.nn.cells.LSTM, got"
WRONG: dict[str, tuple[Any, str]] = {
    "a word": (lambda: LAYER(D, "8"), "hidden_size: expected a whole number of at least 1, got '8'"),
    "half": (lambda: LAYER(D, H, 1.5), "SRU: num_layers: expected a whole number of at least 1, got 1.5"),
    "none": (lambda: LAYER(0, H), "SRU: input_size: expected a whole number of at least 1, got 0"),
    "setting": (lambda: LAYER(D, H, peepholes=True), "'peepholes'; did you mean 'peephole'?"),
    "torch's": (lambda: LAYER(D, H, bias=False), "SRU: unknown setting 'bias'; it takes input_size, "),
    "one sequence": (lambda: SRU(X[0]), "got [5, 7]; one sequence is a batch of one: x[None]"),
    "features": (lambda: SRU(X[..., 1:]), "SRU: expected x of shape [rows, steps, 7], got [3, 5, 6]"),
    "dtype": (
        lambda: SRU(X.double()),
        "SRU: expected x of torch.float32, as the weights are, got torch.float64",
    ),
    "the state of a cell": (lambda: SRU(X, cells.SRU(D, H).start(X)), "of weft.nn.cells by (state,)"),
    "torch's state": (lambda: SRU(X, torch.zeros(1, ROWS, H)), "become states by tuple(zip(h))"),
    "a layer less": (
        lambda: LAYER(D, H, 2)(X, SRU(X)[1]),
        "for each of 2 layers, or none to start anew, got 1",
    ),
    "other rows": (lambda: SRU(X, SRU(X[:2])[1]), "has 2 rows and the input [3, 5, 7] has 3; carry"),
    "other size": (lambda: SRU(X, LAYER(D, H + 1)(X)[1]), "SRU: expected a state of shapes [[3, 8]]"),
    "a number": (
        lambda: SRU(X, 3),
        "SRU: expected a state for each of 1 layers, or none to start anew, got an int",
    ),
    "numbers": (lambda: SRU(X, (3,)), "SRU: expected a state that is a tuple of tensors, got int"),
    "floats": (lambda: SRU(X, mask=torch.ones(ROWS, STEPS)), "SRU: expected a mask of bool (True = real)"),
    "steps first": (lambda: SRU(X, mask=torch.ones(STEPS, ROWS) > 0), "a mask of shape [3, 5], got [5, 3]"),
    "nothing real": (
        lambda: SRU(X, mask=X[..., 0] > 99),
        "got False everywhere; True is real in Weft's masks",
    ),
    "both ways": (
        lambda: LAYER(D, H, bidirectional=True).step(X[:, 0], None),
        "expected one direction for a step",
    ),
    "a mask of torch's": (
        lambda: nn.LSTM(D, H)(X, mask=X[..., 0] > 0),
        "weft.nn.layer_of(weft.nn.cells.LSTM) is a",
    ),
    "NaN": (lambda: SRU(NAN), "SRU: expected x without NaN; fill or drop what is missing"),
    "NaN in the state": (
        lambda: SRU(X, ((NAN[:, 0, :1].expand(-1, H),) * 2,)),
        "SRU: expected a state without NaN",
    ),
    "a drop-in as cell": (lambda: STACK(D, (H,), cell=nn.LSTM), f"{ALONE} weft.nn.drop_in.LSTM"),
    "torch's layer as cell": (lambda: STACK(D, (H,), cell=torch.nn.GRU), f"{ALONE} torch.nn.modules.rnn.GRU"),
    "a name as cell": (lambda: STACK(D, (H,), cell="lstm"), f"{ALONE} 'lstm'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_one_sentence(case: str) -> None:
    call, sentence = WRONG[case]
    with pytest.raises(WeftError) as error:
        call()
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400
    assert isinstance(error.value, ConfigError | ShapeError)


def test_the_base_of_the_layers_is_none_itself() -> None:
    with pytest.raises(ConfigError, match=r"such as weft\.nn\.SRU, got the base of all"):
        nn.RecurrentLayer(8, 4)
