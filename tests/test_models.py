"""The Generator and the Labeller: a loss is a sum over real targets, whatever else is in the batch."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from tests.laws.members import close, ready
from weft import masks
from weft.errors import ShapeError
from weft.models import Generator, Labeller
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import Queries, Summary
from weft.testing.values import gradients_reach_every_parameter

V, C, ROWS, SOURCE, TARGET = 17, 3, 5, 7, 11
LENGTHS = (7, 4, 1, 6, 2)
SOS = 2


class Batch(NamedTuple):
    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor


def batch() -> Batch:
    draw = torch.Generator().manual_seed(5)
    source = torch.randint(4, V, (ROWS, SOURCE), generator=draw)
    target = torch.randint(4, V, (ROWS, TARGET), generator=draw)
    shifted = torch.cat([torch.full((ROWS, 1), SOS), target[:, :-1]], 1)
    source_mask = masks.from_lengths(torch.tensor(LENGTHS), SOURCE)
    return Batch(
        source, source_mask, shifted, target, masks.from_lengths(torch.tensor([11, 1, 5, 8, 3]), TARGET)
    )


def rnn() -> Generator:
    embed = Tokens(V, 6)
    encoder = RecurrentEncoder(6, sizes=(5,), bidirectional=True)
    decoder = RecurrentDecoder(6, encoder, sizes=(13,), enters="both", input_feeding=True)
    return Generator(embed, decoder, Categorical(13, V), encoder=encoder, source_embed=Tokens(V, 6))


def transformer() -> Generator:
    embed = Tokens(V, 6)
    encoder = TransformerEncoder(6, size=6, num_layers=1, num_heads=2, dropout=0.0)
    decoder = TransformerDecoder(6, encoder, size=6, num_layers=1, num_heads=2, dropout=0.0)
    return Generator(embed, decoder, Categorical(6, V, tied=embed.table, smoothing=0.1), encoder=encoder)


def language_model() -> Generator:
    return Generator(Tokens(V, 6), RecurrentDecoder(6, sizes=(13,)), Categorical(13, V))


every_model = pytest.mark.parametrize("make", [rnn, transformer, language_model])


def numbers(model: Generator, given: Batch, **feeding: float) -> tuple[float, int]:
    with torch.no_grad():
        loss = model.loss(given, **feeding)
    return loss.total.item(), loss.count.item()


@every_model
def test_law_2_a_batch_costs_what_its_rows_cost_however_padded(make) -> None:
    model, together = ready(make), batch()
    total, count = numbers(model, together)
    assert count == 28
    alone = 0.0
    for row in range(ROWS):
        s, t = int(together.source_mask[row].sum()), int(together.target_mask[row].sum())
        here = slice(row, row + 1)
        one = Batch(
            together.source[here, :s],
            together.source_mask[here, :s],
            together.target_in[here, :t],
            together.target_out[here, :t],
            together.target_mask[here, :t],
        )
        alone += numbers(model, one)[0]
    assert total == pytest.approx(alone, rel=1e-10)
    padded = Batch(*(nn.functional.pad(each, (0, 3), value=False) for each in together))
    assert numbers(model, padded)[0] == pytest.approx(total, rel=1e-10)


@every_model
def test_law_1_the_loss_is_the_sum_of_what_steps_say(make) -> None:
    model, given = ready(make), batch()
    state, total = model.start(given.source, given.source_mask), 0.0
    for t in range(TARGET):
        logp, state = model.step(given.target_in[:, t], state)
        assert logp.exp().sum(-1).tolist() == pytest.approx([1.0] * ROWS)
        said = logp.gather(1, given.target_out[:, t : t + 1])[:, 0]
        total -= said[given.target_mask[:, t]].sum().item()
    assert numbers(model, given)[0] == pytest.approx(total, rel=1e-10)


@every_model
def test_feeding_is_teacher_forcing_at_one_and_own_words_at_zero(make) -> None:
    model, given = ready(make), batch()
    assert numbers(model, given, feeding=1.0) == numbers(model, given)
    near_one = numbers(model, given, feeding=1 - 1e-9)  # the loop over steps, with true tokens
    assert near_one[0] == pytest.approx(numbers(model, given)[0], rel=1e-10)
    own, state = [given.target_in[:, 0]], model.start(given.source, given.source_mask)
    for _ in range(TARGET - 1):
        logp, state = model.step(own[-1], state)
        own.append(logp.argmax(-1))
    greedy = given._replace(target_in=torch.stack(own, 1))
    assert numbers(model, given, feeding=0.0)[0] == pytest.approx(numbers(model, greedy)[0], rel=1e-10)


@every_model
def test_in_two_passes_its_own_words_are_those_after_the_true_ones(make) -> None:
    model, given = ready(make), batch()
    assert numbers(model, given, feeding=1 - 1e-9, parallel=True)[0] == pytest.approx(
        numbers(model, given)[0], rel=1e-10
    )
    guessed, state = [given.target_in[:, 0]], model.start(given.source, given.source_mask)
    for t in range(TARGET - 1):
        logp, state = model.step(given.target_in[:, t], state)
        guessed.append(logp.argmax(-1))
    own = given._replace(target_in=torch.stack(guessed, 1))
    assert numbers(model, given, feeding=0.0, parallel=True)[0] == pytest.approx(
        numbers(model, own)[0], rel=1e-10
    )


def test_step_by_step_each_place_has_a_draw_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = ready(rnn), batch()
    true = torch.rand(ROWS, TARGET, generator=torch.Generator().manual_seed(7)) < 0.5
    own, state = [given.target_in[:, 0]], model.start(given.source, given.source_mask)
    for t in range(1, TARGET):
        logp, state = model.step(own[-1], state)
        own.append(torch.where(true[:, t], given.target_in[:, t], logp.argmax(-1)))
    mixed = given._replace(target_in=torch.stack(own, 1))
    monkeypatch.setattr(model, "_true", lambda *_: true)
    assert numbers(model, given, feeding=0.5)[0] == pytest.approx(numbers(model, mixed)[0], rel=1e-10)


def test_feeding_per_sequence_is_all_or_nothing() -> None:
    model, given = ready(rnn), batch()
    rows = [Batch(*(each[row : row + 1] for each in given)) for row in range(ROWS)]
    true = [numbers(model, row, feeding=1.0)[0] for row in rows]
    own = [numbers(model, row, feeding=0.0)[0] for row in rows]
    possible = {0.0}
    for one, other in zip(true, own, strict=True):
        possible = {total + each for total in possible for each in (one, other)}
    seen = {round(numbers(model, given, feeding=0.5, per_sequence=True)[0], 6) for _ in range(12)}
    assert len(seen) > 1
    assert seen <= {round(total, 6) for total in possible}


@every_model
def test_law_5_gradients_reach_every_parameter_with_and_without_the_true_words(make) -> None:
    for feeding in (1.0, 0.5):
        model = ready(make).train()
        model.loss(batch(), feeding=feeding).mean.backward()
        gradients_reach_every_parameter(model)


@every_model
def test_law_10_saved_and_loaded_gives_the_same(make, tmp_path: Path) -> None:
    model, other = ready(make), ready(make, seed=4)
    assert numbers(model, batch()) != numbers(other, batch())
    save_model(model, str(tmp_path / "model.safetensors"))
    load_model(other, str(tmp_path / "model.safetensors"))
    close(other.features(batch()), model.features(batch()), 0.0)
    assert numbers(model, batch()) == numbers(other, batch())


def test_one_table_serves_source_target_and_output() -> None:
    model = ready(transformer)
    assert model.source_embed is model.embed
    assert model.head.weight is model.embed.table.weight
    assert (
        len([name for name, _ in model.named_parameters() if "table" in name or name == "head.weight"]) == 1
    )


def test_a_source_without_a_word_is_refused() -> None:
    mask = batch().source_mask.clone()
    mask[3] = False
    with pytest.raises(ShapeError, match="source mask: "):
        ready(rnn).start(batch().source, mask)


class Labels(NamedTuple):
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


def labels(model: Labeller) -> Labels:
    draw = torch.Generator().manual_seed(5)
    source = torch.randint(4, V, (ROWS, SOURCE), generator=draw)
    shape = (ROWS, SOURCE) if model.pool is None else (ROWS,)
    target = torch.randint(0, C, shape, generator=draw)
    return Labels(source, masks.from_lengths(torch.tensor(LENGTHS), SOURCE), target)


every_labeller = pytest.mark.parametrize("make", [classifier, looking, tagger])


@every_labeller
def test_law_2_a_batch_of_labels_costs_what_its_rows_cost_however_padded(make) -> None:
    model = ready(make)
    together = labels(model)
    loss = model.loss(together)
    assert int(loss.count) == (sum(LENGTHS) if model.pool is None else ROWS)
    alone = 0.0
    for row, n in enumerate(LENGTHS):
        target = together.target[row : row + 1]
        target = target[:, :n] if model.pool is None else target
        one = Labels(together.source[row : row + 1, :n], together.source_mask[row : row + 1, :n], target)
        alone += model.loss(one).total.item()
    assert loss.total.item() == pytest.approx(alone, rel=1e-10)
    target = nn.functional.pad(together.target, (0, 3)) if model.pool is None else together.target
    padded = Labels(*(nn.functional.pad(each, (0, 3), value=False) for each in together[:2]), target)
    assert model.loss(padded).total.item() == pytest.approx(loss.total.item(), rel=1e-10)


@every_labeller
def test_the_loss_is_that_of_what_it_says(make) -> None:
    model = ready(make)
    given = labels(model)
    logp = model(given.source, given.source_mask)
    target = given.target if model.pool is None else given.target[:, None]
    mask = given.source_mask if model.pool is None else torch.ones(ROWS, 1, dtype=torch.bool)
    said = logp.gather(2, target[..., None])[..., 0][mask].sum()
    assert model.loss(given).total.item() == pytest.approx(-said.item(), rel=1e-10)
    close(model.best(given.source, given.source_mask).double(), logp.argmax(-1).double(), 0.0)


@every_labeller
def test_law_5_gradients_reach_every_parameter(make) -> None:
    model = ready(make).train()
    model.loss(labels(model)).mean.backward()
    gradients_reach_every_parameter(model)


@every_labeller
def test_law_10_a_labeller_saved_and_loaded_gives_the_same(make, tmp_path: Path) -> None:
    model, other = ready(make), ready(make, seed=4)
    given = labels(model)
    save_model(model, str(tmp_path / "model.safetensors"))
    load_model(other, str(tmp_path / "model.safetensors"))
    close(other(given.source, given.source_mask), model(given.source, given.source_mask), 0.0)


def test_a_sequence_without_a_position_is_refused() -> None:
    model = ready(classifier)
    given = labels(model)
    mask = given.source_mask.clone()
    mask[3] = False
    with pytest.raises(ShapeError, match="source mask: row 3 has no real position"):
        model.loss(given._replace(source_mask=mask))
