"""The Labeller: its loss is a sum over real targets, independent of the rest of the batch."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from tests.laws.members import close, ready
from weft import masks
from weft.errors import ShapeError
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import Queries, Summary
from weft.testing.values import gradients_reach_every_parameter

V, C, ROWS, SOURCE = 17, 3, 5, 7
LENGTHS = (7, 4, 1, 6, 2)


class Batch(NamedTuple):
    source: Tensor
    source_mask: Tensor
    target: Tensor


def classifier() -> Labeller:
    encoder = RecurrentEncoder(6, sizes=(5,), bidirectional=True)
    return Labeller(Tokens(V, 6), encoder, Categorical(10, C), pool=Summary(10))


def looking() -> Labeller:
    encoder = TransformerEncoder(6, size=6, num_layers=1, num_heads=2, dropout=0.0)
    pool = Queries(6, num_queries=2)
    return Labeller(Tokens(V, 6), encoder, Categorical(pool.size, C), pool=pool)


def tagger() -> Labeller:
    encoder = RecurrentEncoder(6, sizes=(5,), bidirectional=True)
    return Labeller(Tokens(V, 6), encoder, Categorical(10, C))


def batch(model: Labeller) -> Batch:
    draw = torch.Generator().manual_seed(5)
    source = torch.randint(4, V, (ROWS, SOURCE), generator=draw)
    shape = (ROWS, SOURCE) if model.pool is None else (ROWS,)
    target = torch.randint(0, C, shape, generator=draw)
    return Batch(source, masks.from_lengths(torch.tensor(LENGTHS), SOURCE), target)


every_model = pytest.mark.parametrize("make", [classifier, looking, tagger])


@every_model
def test_law_2_a_batch_costs_what_its_rows_cost_however_padded(make) -> None:
    model = ready(make)
    together = batch(model)
    loss = model.loss(together)
    assert int(loss.count) == (sum(LENGTHS) if model.pool is None else ROWS)
    alone = 0.0
    for row, n in enumerate(LENGTHS):
        target = together.target[row : row + 1]
        target = target[:, :n] if model.pool is None else target
        one = Batch(together.source[row : row + 1, :n], together.source_mask[row : row + 1, :n], target)
        alone += model.loss(one).total.item()
    assert loss.total.item() == pytest.approx(alone, rel=1e-10)
    target = nn.functional.pad(together.target, (0, 3)) if model.pool is None else together.target
    padded = Batch(*(nn.functional.pad(each, (0, 3), value=False) for each in together[:2]), target)
    assert model.loss(padded).total.item() == pytest.approx(loss.total.item(), rel=1e-10)


@every_model
def test_the_loss_is_that_of_what_it_says(make) -> None:
    model = ready(make)
    given = batch(model)
    logp = model(given.source, given.source_mask)
    target = given.target if model.pool is None else given.target[:, None]
    mask = given.source_mask if model.pool is None else torch.ones(ROWS, 1, dtype=torch.bool)
    said = logp.gather(2, target[..., None])[..., 0][mask].sum()
    assert model.loss(given).total.item() == pytest.approx(-said.item(), rel=1e-10)
    close(model.best(given.source, given.source_mask).double(), logp.argmax(-1).double(), 0.0)


@every_model
def test_law_5_gradients_reach_every_parameter(make) -> None:
    model = ready(make).train()
    model.loss(batch(model)).mean.backward()
    gradients_reach_every_parameter(model)


@every_model
def test_law_10_saved_and_loaded_gives_the_same(make, tmp_path: Path) -> None:
    model, other = ready(make), ready(make, seed=4)
    given = batch(model)
    save_model(model, str(tmp_path / "model.safetensors"))
    load_model(other, str(tmp_path / "model.safetensors"))
    close(other(given.source, given.source_mask), model(given.source, given.source_mask), 0.0)


def test_a_sequence_without_a_position_is_refused() -> None:
    model = ready(classifier)
    given = batch(model)
    mask = given.source_mask.clone()
    mask[3] = False
    with pytest.raises(ShapeError, match="source mask: row 3 has no real position"):
        model.loss(given._replace(source_mask=mask))
