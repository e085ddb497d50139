"""A run that starts with parts of another one: their weights by name, rows of tables by their pieces."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.commands import corpus, labelled
from tests.commands.corpus import stopped
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.config import read_recipe
from weft.run import open_run
from weft.store import weights
from weft.train.checkpoints import Checkpoints

ENCODER = "model.encoder={use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.1}"
START = ("validate_start=true", "max_updates=2", "validate_every=2", "metric=loss")


@pytest.fixture(scope="module")
def masked() -> Path:
    return shared_run("masked")


@pytest.fixture(scope="module")
def translator() -> Path:
    return shared_run("translate")


def classified(folder: Path, masked: Path, *changes: str) -> tuple[object, ...]:
    recipe = labelled.make_texts(folder / "toy")
    start = [f"training.start={masked}", *(f"training.{one}" for one in START)]
    return ("train", recipe, "--run", folder / "run", ENCODER, "model.embedding.size=16", *start, *changes)


def test_encoder_and_shared_rows_of_a_masked_model_begin_a_classifier(masked: Path, tmp_path: Path) -> None:
    answer = weft(*classified(tmp_path, masked, "training.start_parts=[embed, encoder]"), code=0)
    begun = Checkpoints(tmp_path / "run", print).load(0).weights
    other = weights.load(masked / "model.safetensors")
    for name, tensor in other.items():
        if name.startswith("predictor.encoder."):
            assert torch.equal(begun[name.removeprefix("predictor.")], tensor), name
    vocabularies = [open_run(path, device="cpu").pipeline for path in (tmp_path / "run", masked)]
    own, theirs = vocabularies[0].reader.vocabulary, vocabularies[1].vocabulary
    own, theirs = (each.pieces(range(len(each))) for each in (own, theirs))
    shared = set(own) & set(theirs)
    assert "▁a" in shared and len(shared) < len(own)
    assert f"{len(shared)} of {len(own)} rows, {len(own) - len(shared)} keep" in answer.err
    for number, piece in enumerate(own):
        row = begun["embed.table.weight"][number]
        if piece in shared:
            assert torch.equal(row, other["predictor.embed.table.weight"][theirs.index(piece)]), piece
        else:
            assert not (other["predictor.embed.table.weight"] == row).all(1).any(), piece


def test_with_its_vocabulary_every_row_is_taken(masked: Path, tmp_path: Path) -> None:
    answer = weft(*classified(tmp_path, masked, "training.start_parts=[vocabulary, embed, encoder]"), code=0)
    kept = [path / "tokenizer.json" for path in (masked, tmp_path / "run")]
    assert kept[0].read_bytes() == kept[1].read_bytes() and "keep their" not in answer.err
    begun = Checkpoints(tmp_path / "run", print).load(0).weights["embed.table.weight"]
    other = weights.load(masked / "model.safetensors")["predictor.embed.table.weight"]
    assert torch.equal(begun, other[:-1])  # the last one is the mask


@pytest.mark.slow
def test_a_frozen_encoder_of_another_pair_stays_and_the_old_run_may_go(
    translator: Path, tmp_path: Path
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    changes = [
        "training.max_updates=23",
        "training.validate_every=10",
        "model.decoder={use: recurrent, cell: lstm, sizes: [12], score: additive, dropout: 0.2}",
        "training.start_parts=[source_embed, encoder]",
        "training.freeze=[source_embed, encoder]",
    ]
    runs = []
    for name in ("whole", "broken"):
        old = tmp_path / f"old-{name}"
        shutil.copytree(translator, old)
        runs.append((tmp_path / name, [*changes, f"training.start={old}"]))
    (whole, first), (broken, second) = runs
    assert weft("train", recipe, "--run", whole, *first).code == 0
    assert stopped(recipe, broken, 14, *second).code == 143
    shutil.rmtree(tmp_path / "old-broken")
    answer = weft("train", recipe, "--run", broken, *second)
    assert answer.code == 0 and "resumes after update 14" in answer.err
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
    other, found = (weights.load(run / "model.safetensors") for run in (translator, whole))
    taken = [name for name in found if name.startswith(("encoder.", "source_embed."))]
    assert len(taken) > 5 and all(torch.equal(found[name], other[name]) for name in taken)
    state = Checkpoints(whole, print).newest()
    assert state is not None and not any(key.endswith(tuple(taken)) for key in state.optimiser)
    assert weft("predict", whole, stdin=b"alpha beta\n").code == 0


def test_a_start_that_comes_too_late_is_reported_and_not_recorded(masked: Path, tmp_path: Path) -> None:
    first = classified(tmp_path, masked, "training.start_parts=[embed]")
    assert "is not used" not in weft(*first).err
    assert "is not used" not in weft(*first, "training.max_updates=3").err
    late = weft(*first, f"training.start={tmp_path / 'none'}", "training.max_updates=4")
    assert late.code == 0 and f"training.start={tmp_path / 'none'} is not used" in late.err
    recorded = read_recipe(tmp_path / "run" / "recipe.yaml").plain()["training"]
    assert (recorded["start"], recorded["start_parts"]) == (str(masked), ["embed"])
    assert recorded["max_updates"] == 4


def test_a_part_may_have_another_name_there(masked: Path, tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    decoder = "model.decoder={use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.1}"
    changes = [
        ENCODER,
        decoder,
        "model.embedding.size=16",
        f"training.start={masked}",
        "training.max_updates=1",
    ]
    part = "training.start_parts={source_embed: embed, encoder: encoder}"
    answer = weft("train", recipe, "--run", tmp_path / "run", *changes, part)
    assert answer.code == 0 and "source_embed (4 of 13 rows" in answer.err, answer.err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["training.start_parts=[encoder, nonsense]"], ["start_parts", "nonsense", "embed, encoder, head"]),
        (
            ["training.start_parts=[encoder]", "model.encoder.num_heads=4"],
            ["model.encoder.num_heads", "2", "4"],
        ),
        (["training.start_parts=[embed]", "model.embedding.size=12"], ["embed.table.weight", "12]", "16]"]),
        (["training.start_parts=[head]"], ["head", "has no"]),
        (["training.start_parts={embed: encoder}"], ["embed", "has no"]),
        (["training.start_parts=7"], ["start_parts", "expected"]),
    ],
)
def test_what_does_not_fit_is_refused(
    masked: Path, tmp_path: Path, changes: list[str], words: list[str]
) -> None:
    said = refused(weft(*classified(tmp_path, masked, *changes)))
    assert all(word in said for word in words), said


@pytest.mark.parametrize("changes", [[], ["training.start_parts=[encoder]"]])
def test_a_start_that_is_no_run_leaves_nothing(masked: Path, tmp_path: Path, changes: list[str]) -> None:
    said = refused(weft(*classified(tmp_path, masked, *changes, "training.start=nowhere")))
    assert "training.start: expected a trained run, got nowhere" in said
    assert not (tmp_path / "run").exists()


def test_a_damaged_start_is_refused(masked: Path, tmp_path: Path) -> None:
    command = classified(tmp_path, masked, "training.start_parts=[encoder]")
    assert weft(*command).code == 0
    start = tmp_path / "run" / "start.safetensors"
    for wrong in ({"parts": 3}, {"rows": []}, {"rows": 1}, {"named": {"0.x": -1}}):
        about = {"run": "x", "parts": {}, "rows": [], "named": {"0.x": 0}, "scales": {}, **wrong}
        about["named"] = {"0.x": 1} if wrong == {"rows": []} else about["named"]
        packed = weights.pack(weights.load(start), **{"training.start_parts": json.dumps(about)})
        start.write_bytes(packed)
        assert "start.safetensors: is damaged" in refused(weft(*command, "training.max_updates=5")), wrong
