"""Silenced units and changed attention weights: equal to the equations, in the edited copy only."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from weft.diagnose.ablate import silenced
from weft.diagnose.attention import steered
from weft.diagnose.recorded import places
from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.recurrent import Stack
from weft.probe import edited, editing, probe

SOURCE = torch.tensor([[5, 6, 7, 8, 9]])
REAL = torch.ones(1, 5, dtype=torch.bool)


def generator(kind: str, cell: Callable[[int, int], Cell] = GRU) -> Generator:
    torch.manual_seed(3)
    encoder = RecurrentEncoder(7, sizes=(6,), cell=cell, bidirectional=True)
    decoder: nn.Module
    if kind == "transformer":
        decoder = TransformerDecoder(7, encoder, size=8, num_layers=2, num_heads=2, inner=11, dropout=0.0)
    else:
        decoder = RecurrentDecoder(7, encoder, sizes=(6,), cell=cell, enters=kind, key_size=6)  # type: ignore[arg-type]
    model = Generator(
        Tokens(13, 7),
        decoder,  # type: ignore[arg-type]
        Categorical(decoder.size, 13),  # type: ignore[arg-type]
        encoder=encoder,
        source_embed=Tokens(11, 7),
    )
    return model.double().eval()


@pytest.mark.parametrize("cell", [Elman, GRU, LSTM])
def test_a_silenced_unit_is_one_whose_weights_are_gone(cell: type[Cell]) -> None:
    torch.manual_seed(1)
    stack = Stack(3, (5, 7), cell=cell).double().eval()
    x = torch.randn(2, 6, 3, dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [1]])
    y, finals = silenced(stack, {"forwards.0": [1, 4]})(x, None, mask)
    # Manually: the lower layer step by step, its units 1 and 4 set to 0 in y and in the state.
    lower, upper = stack.forwards
    state, outputs = lower.start(x), []
    for t in range(6):
        h, new = lower.step(x[:, t], state)
        new = tuple(part.clone() for part in new)
        for part in new:
            part[:, [1, 4]] = 0
        held = mask[:, t, None]
        state = tuple(torch.where(held, a, b) for a, b in zip(new, state, strict=True))
        h = h.clone()
        h[:, [1, 4]] = 0
        outputs.append(h * held)
    wanted, _ = upper(torch.stack(outputs, 1), upper.start(x), mask)
    assert (y - wanted).abs().max() < 1e-10
    assert finals[0][0][0][:, [1, 4]].abs().max() == 0
    plain, _ = stack(x, None, mask)
    assert (plain - y).abs().max() > 1e-3, "the units were good for nothing"


def test_the_model_itself_is_not_touched_and_nothing_is_copied() -> None:
    model = generator("late")
    before = model.step(torch.tensor([2]), model.start(SOURCE, REAL))[0]
    name = places(model)[0].name
    without = silenced(model, {name: [0, 1, 2]})
    assert {id(one) for one in without.parameters()} == {id(one) for one in model.parameters()}
    after = model.step(torch.tensor([2]), model.start(SOURCE, REAL))[0]
    assert (before == after).all()
    assert (without.step(torch.tensor([2]), without.start(SOURCE, REAL))[0] - after).abs().max() > 1e-4
    nothing = silenced(model, {})
    assert (nothing.step(torch.tensor([2]), nothing.start(SOURCE, REAL))[0] == after).all()


def test_cells_and_units_that_are_not_there_are_named() -> None:
    model = generator("late")
    with pytest.raises(ConfigError, match=r"unknown cell 'x'.*decoder"):
        silenced(model, {"x": [0]})
    with pytest.raises(ConfigError, match="there is no unit 6, it has units 0 to 5"):
        silenced(model, {places(model)[0].name: [6]})


def written(model: Generator, tokens: list[int]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Log-probabilities and attention weights of each step."""
    state, found, looks = model.start(SOURCE, REAL), [], []
    for token in tokens:
        with torch.no_grad(), probe() as seen:
            logp, state = model.step(torch.tensor([token]), state)
        found.append(logp)
        looks.append((seen["attention"] or seen["cross_attention"])[-1].flatten(0, -2))
    return found, looks


@pytest.mark.parametrize("kind", ["late", "input", "both", "transformer"])
def test_a_step_looks_where_it_is_told_and_the_steps_before_it_are_as_they_were(kind: str) -> None:
    model = generator(kind)
    tokens = [2, 4, 5, 6]
    plain, _ = written(model, tokens)
    wanted = torch.tensor([0.0, 0.0, 0.75, 0.25, 0.0])
    forced = steered(model, {2: wanted})
    found, looks = written(forced, tokens)
    assert (looks[1] == wanted.double()).all()
    assert (found[0] == plain[0]).all() and (found[1] - plain[1]).abs().max() > 1e-6
    again, _ = written(forced, tokens)  # step numbers begin again
    assert all((a == b).all() for a, b in zip(found, again, strict=True))
    assert all((a == b).all() for a, b in zip(plain, written(model, tokens)[0], strict=True))


@pytest.mark.parametrize("kind", ["late", "transformer"])
def test_the_context_of_a_forced_step_is_the_one_value_looked_at(kind: str) -> None:
    model = generator(kind)
    own = {}

    def mine(name: str, weights: torch.Tensor) -> torch.Tensor:
        if name in ("attention", "cross_attention"):
            own[name] = weights
        return weights

    state = model.start(SOURCE, REAL)
    with editing(mine):  # an edit that changes nothing uses other code with the same result
        edited_way = model.step(torch.tensor([2]), state)[0]
    assert (edited_way - model.step(torch.tensor([2]), state)[0]).abs().max() < 1e-10
    assert own
    # With all weight on one position only its value counts.
    one = torch.eye(5)[3]
    forced = steered(model, {1: one})
    state = forced.start(SOURCE, REAL)
    wanted = forced.step(torch.tensor([2]), state)[0]
    if kind == "late":
        values = state.source.values.clone()
        values[:, [0, 1, 2, 4]] = 17.0
        state = state._replace(source=state.source._replace(values=values))
        state_time = steered(model, {1: one})
        state_time.start(SOURCE, REAL)
        assert (state_time.step(torch.tensor([2]), state)[0] - wanted).abs().max() < 1e-10


def test_an_edit_ends_with_its_block() -> None:
    x = torch.ones(2)
    with editing(lambda name, tensor: tensor * 2):
        assert edited("attention", x).tolist() == [2, 2]
    assert edited("attention", x) is x
