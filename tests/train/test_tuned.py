"""Frozen parts stay as they are, and parts with a rate of their own move that much further."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.slow import leading
from tests.train.toy import Task, quiet, settings
from tests.train.traces import BUSY, resumed, terminate, unbroken, vars_of
from weft import rooms
from weft.errors import ConfigError
from weft.models import Generator, Labeller
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.train import optimisers, tuned
from weft.train.checkpoints import Checkpoints
from weft.train.loop import train
from weft.train.optimisers import SGD, Optimiser
from weft.train.tuned import FrozenParts, scales


def first_weights(chosen: Any, run: Path) -> dict[str, torch.Tensor]:
    """The weights before the first update."""
    trained(chosen, run, max_epochs=0, max_updates=1, validate_start=True)
    return Checkpoints(run, print).load(0).weights


def trained(chosen: Any, run: Path, **changes: Any) -> Task:
    run.mkdir(exist_ok=True)
    task = Task()
    train(task, run, settings(**{**vars_of(chosen), **changes}), quiet(run))
    return task


def newest(run: Path) -> Any:
    found = Checkpoints(run, print).newest()
    assert found is not None
    return found


def test_a_frozen_part_keeps_its_weights_and_has_no_state_and_no_dropout(tmp_path: Path) -> None:
    chosen = settings(freeze=("embed", "cell"), optimiser=SGD(lr=0.1, momentum=0.9))
    before = first_weights(chosen, tmp_path / "start")
    modes = []
    task = Task(on_batch=lambda number: modes.append((task.built.cell.training, task.built.dropout.training)))
    train(task, tmp_path, chosen, quiet(tmp_path))
    assert set(modes) == {(False, True)}  # after a validation too
    found = newest(tmp_path)
    for name, tensor in found.weights.items():
        frozen = name.startswith(("embed.", "cell.", "output.weight"))  # tied to the embedding
        assert torch.equal(tensor, before[name]) == frozen, name
    stateful = {key.partition("/")[2] for key in found.optimiser}
    assert stateful == {"norm.weight", "norm.bias", "output.bias"}
    assert task.built is not None and all(one.grad is None for one in task.built.cell.parameters())


def test_a_part_is_released_after_so_many_updates(tmp_path: Path) -> None:
    chosen = settings(freeze=("cell",), freeze_updates=4, save_every=1, keep_best=9)
    before = first_weights(chosen, tmp_path / "start")
    trained(chosen, tmp_path / "four", max_epochs=0, max_updates=4)
    trained(chosen, tmp_path / "five", max_epochs=0, max_updates=5)
    name = "cell.weight_hh_l0"
    assert torch.equal(newest(tmp_path / "four").weights[name], before[name])
    assert f"exp_avg/{name}" not in newest(tmp_path / "four").optimiser
    found = newest(tmp_path / "five")
    assert not torch.equal(found.weights[name], before[name])
    assert found.optimiser[f"step/{name}"].item() == 1 and found.optimiser["step/norm.bias"].item() == 5


@pytest.mark.parametrize("at", leading([9, 13, 2, 20], 2))
def test_stopped_before_and_after_the_release_it_resumes_bit_identically(tmp_path: Path, at: int) -> None:
    own = {"freeze": ("cell",), "freeze_updates": 4, "part_rates": {"norm": 0.3}, "layer_decay": 0.5}
    chosen = settings(**{**vars_of(BUSY), **own})
    (tmp_path / "whole").mkdir()
    whole = unbroken(tmp_path / "whole", chosen)
    assert resumed(tmp_path, chosen, Task(on_batch=terminate(at)), Task()).differs(whole) == []


def test_a_step_of_plain_descent_is_as_long_as_the_rate_of_its_part(tmp_path: Path) -> None:
    chosen = settings(optimiser=SGD(lr=0.5), clip_norm=0, max_epochs=0, max_updates=1)
    slowed = settings(**{**vars_of(chosen), "part_rates": {"cell": 0.25}})
    before = first_weights(chosen, tmp_path / "start")
    moved = []
    for name, each in (("plain", chosen), ("slowed", slowed)):
        trained(each, tmp_path / name)
        moved.append({key: one - before[key] for key, one in newest(tmp_path / name).weights.items()})
    for name, step in moved[0].items():
        torch.testing.assert_close(
            moved[1][name], step * (0.25 if name.startswith("cell.") else 1), atol=1e-6, rtol=1e-4
        )


def pair() -> Generator:
    encoder = TransformerEncoder(8, size=8, num_layers=3, num_heads=2)
    decoder = TransformerDecoder(8, encoder, size=8, num_layers=2, num_heads=2)
    return Generator(
        Tokens(7, 8), decoder, Categorical(decoder.size, 7), encoder=encoder, source_embed=Tokens(11, 8)
    )


def test_rates_fall_from_the_top_layer_to_the_embeddings() -> None:
    found = scales(pair(), {"decoder": 0.1}, 0.5)
    by_part = {
        "encoder.blocks.0.": 0.25,
        "encoder.blocks.2.": 1.0,
        "encoder.last_norm.": 1.0,
        "decoder.blocks.0.": 0.05,
        "decoder.blocks.1.": 0.1,
        "source_embed.": 0.125,
        "embed.": 0.125,
        "head.": 1.0,
    }
    for start, scale in by_part.items():
        some = [value for name, value in found.items() if name.startswith(start)]
        assert some and some == pytest.approx([scale] * len(some)), start
    assert set(scales(pair(), {}, 1.0).values()) == {1.0}


def test_a_frozen_part_has_no_gradient_and_the_others_have_theirs() -> None:
    torch.manual_seed(3)
    encoder = TransformerEncoder(8, size=8, num_layers=2, num_heads=2, dropout=0.0)
    model = Labeller(Tokens(13, 8), encoder, Categorical(8, 5)).double()
    source = torch.tensor([[5, 6, 7], [8, 0, 0]])
    mask = source > 0

    def gradients() -> dict[str, torch.Tensor]:
        h, real = model.features(source, mask)
        some = {name: one for name, one in model.named_parameters() if one.requires_grad}
        found = torch.autograd.grad(model.head.loss(h, source % 5, real).total, list(some.values()))
        return dict(zip(some, found, strict=True))

    whole = gradients()
    frozen = FrozenParts(model, ["embed", "encoder.blocks.0"], 2)
    frozen.at(1)
    part = gradients()
    assert {name for name in whole if name not in part} == {
        name for name in whole if name.startswith(("embed.", "encoder.blocks.0."))
    }
    for name, gradient in part.items():
        torch.testing.assert_close(gradient, whole[name], atol=1e-10, rtol=1e-10)
    frozen.at(2)
    assert gradients().keys() == whole.keys() and model.embed.training


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"freeze": ("encoders",)}, "training.freeze: expected one of embed, cell, norm"),
        ({"freeze": ("",)}, "training.freeze: expected one of"),
        ({"freeze": ("dropout",)}, "training.freeze: expected one of"),
        ({"freeze": ("embed", "cell", "norm", "output")}, "nothing to train"),
        ({"part_rates": {"x": 0.5}}, "training.part_rates: expected one of"),
    ],
)
def test_what_cannot_be_frozen_is_refused(tmp_path: Path, setting: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        train(Task(), tmp_path, settings(**setting), quiet(tmp_path))


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"freeze_updates": 3}, "training.freeze_updates: expected training.freeze"),
        ({"start_parts": ("embed",)}, "training.start_parts: expected training.start"),
        ({"layer_decay": 0.0}, "training.layer_decay"),
        ({"layer_decay": 1.5}, "training.layer_decay"),
        ({"part_rates": {"embed": 0.0}}, "training.part_rates.embed"),
        ({"freeze": ("embed",), "sharding": "full"}, "training.freeze: cannot be combined"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        settings(**setting)


def test_a_part_is_found_by_the_end_of_its_path() -> None:
    model = nn.ModuleDict({"predictor": pair()})
    assert tuned.find_part(model, "encoder", "x") == "predictor.encoder"
    assert tuned.find_part(model, "encoder.blocks.1", "x") == "predictor.encoder.blocks.1"
    assert "source_embed" in tuned.names(model)


@pytest.mark.parametrize("name", sorted(rooms.parts(optimisers, Optimiser)))
def test_each_optimiser_moves_a_part_by_its_own_rate_and_leaves_a_frozen_one(name: str) -> None:
    made = rooms.parts(optimisers, Optimiser)[name](lr=0.1)
    found = []
    for rates in ({}, {"encoder": 1e-6}):
        model = Labeller(
            Tokens(13, 8), TransformerEncoder(8, size=8, num_layers=1, num_heads=2), Categorical(8, 5)
        )
        FrozenParts(model, ["embed"], 0).at(0)
        optimiser = made.build(model)
        tuned.apply(optimiser, model, scales(model, rates, 1.0))
        before = [one.clone() for one in model.parameters()]
        for one in model.parameters():
            one.grad = torch.ones_like(one) if one.requires_grad else None
        for group in optimiser.param_groups:
            group["lr"] = 0.1 * group.get("scale", 1.0)
        optimiser.step()
        steps = {
            n: (one - old).abs().max().item()
            for (n, one), old in zip(model.named_parameters(), before, strict=True)
        }
        found.append(max(step for key, step in steps.items() if key.startswith("encoder.")))
        assert all(step == 0 for key, step in steps.items() if key.startswith("embed."))
        assert min(step for key, step in steps.items() if key.startswith("head.")) > 1e-3
    assert found[0] > 1e-3 and found[1] < 1e-5


def test_patterns_freeze_several_parts_and_weights() -> None:
    model = pair()
    FrozenParts(model, ["encoder.*.attention_norm", "decoder.*.bias"], 0).at(0)
    frozen = {name for name, one in model.named_parameters() if not one.requires_grad}
    norms = {f"encoder.blocks.{n}.attention_norm.{part}" for n in range(3) for part in ("weight", "bias")}
    biases = {
        name for name, _ in model.named_parameters() if name.startswith("decoder.") and name.endswith("bias")
    }
    assert frozen == norms | biases


def test_a_table_releases_parts_one_after_the_other() -> None:
    model = pair()
    parts = FrozenParts(model, {"embed": 0, "encoder.blocks.0": 5, "encoder.blocks.1": 3}, 0)
    seen = []
    for update in (0, 3, 5, math.inf):
        parts.at(update)
        blocks = [one.attention.query.weight.requires_grad for one in model.encoder.blocks]
        assert not model.embed.table.weight.requires_grad
        seen.append(blocks)
    assert seen == [[False, False, True], [False, True, True], [True, True, True], [True, True, True]]


def test_an_unknown_name_is_refused_with_a_near_one() -> None:
    for name in ("encodr", "encoder.blocs.*"):
        with pytest.raises(ConfigError, match=r"did you mean '(encoder|encoder.blocks)"):
            FrozenParts(pair(), [name], 0)


def test_learned_positions_have_the_rate_of_the_embeddings() -> None:
    encoder = TransformerEncoder(8, size=8, num_layers=3, num_heads=2, positions="learned", entry_norm=True)
    found = scales(Labeller(Tokens(7, 8), encoder, Categorical(8, 5)), {}, 0.5)
    assert {found[f"encoder.{name}.weight"] for name in ("positions.table", "entry_norm")} == {0.125}
    assert found["embed.table.weight"] == 0.125
