"""A training that is stopped goes on with the same command, to the bit where the unbroken one ends."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.corpus import stopped
from tests.commands.shell import refused, untouched, weft
from weft.config import read_recipe
from weft.run.training import begin_run


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_stopped_and_gone_on_with_is_the_unbroken_run(
    toy: Path, tmp_path: Path, number: int, code: int
) -> None:
    changes = "training.max_updates=23", "training.validate_every=10", "model.decoder.dropout=0.2"
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes).code == 0
    answer = stopped(toy, broken, 14, *changes, number=number)
    assert answer.code == code
    assert "stopped after update 14; " in answer.err
    said = re.search(r"^resume with: \S*weft (.+)$", answer.err, re.M)
    assert said
    again = weft(*shlex.split(said[1]), code=0)
    assert "resumes after update 14" in again.err
    for name in ("model.safetensors", "checkpoints.json", "recipe.yaml", "tokenizer.source.json"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    last = [run / "checkpoints" / "step-00000023" for run in (whole, broken)]
    for name in ("model.safetensors", "optimiser.safetensors"):
        assert (last[0] / name).read_bytes() == (last[1] / name).read_bytes(), name
    losses = [
        [
            line["scores"]
            for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
            if "scores" in line
        ]
        for run in (whole, broken)
    ]
    assert losses[0] == losses[1] and len(losses[0]) == 3


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("model.decoder.sizes=[19]", r"model\.decoder\.sizes: \[17\], the recipe says \[19\]"),
        ("data.batch_tokens=301", r"data\.batch_tokens: 300, the recipe says 301"),
        ("data.vocabulary.kind=character", "data.vocabulary.kind: word, the recipe says character"),
        ("training.seed=2", "training.seed: 1, the recipe says 2"),
        ("training.optimiser.use=sgd", "training.optimiser.use: adam, the recipe says sgd"),
    ],
)
def test_a_run_keeps_its_data_its_model_and_its_seed(trained: Path, change: str, place: str) -> None:
    recipe = trained.parent / "toy" / "toy.yaml"
    said = untouched(trained, lambda: weft("train", recipe, "--run", trained, change))
    start = f"; to start from this run's model, add --run {trained}-2 training.start={trained}"
    more = start if change.startswith("data.batch") else ""
    assert re.search(rf"{trained}: this run was started with {place}; .* with another --run{more}$", said)


def within(folder: Path) -> list[str]:
    """Settings that find the data in a folder, however it is called."""
    return [f"data.folder={folder}", "data.train=train", "data.valid=valid", "data.test=test"]


def test_a_project_that_was_moved_goes_on(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3", *within(toy.parent)).code == 0
    moved = toy.parent.rename(tmp_path / "elsewhere")
    answer = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    assert answer.code == 0 and "after 5 updates" in answer.out
    assert weft("evaluate", run).code == 0


def test_another_folder_before_the_first_checkpoint_begins_anew(toy: Path, tmp_path: Path) -> None:
    run, made = tmp_path / "run", tmp_path / "run" / "tokenizer.source.json"
    begin_run(run, read_recipe(toy, within(toy.parent)))
    made.write_text("{}")  # and then it was killed
    begin_run(run, read_recipe(toy, within(toy.parent)))
    assert made.exists()
    right = corpus.make(tmp_path / "right")
    begin_run(run, read_recipe(right, within(right.parent)))
    assert not made.exists()


def test_other_data_in_the_new_place_is_told(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3", *within(toy.parent)).code == 0
    moved = toy.parent.rename(tmp_path / "elsewhere")
    for file in moved.glob("train.*"):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:40]))
    again = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    said = refused(again)
    assert f"{moved / 'train.xx'}: has changed since the training of {run} began; to train on it" in said
    assert f"weft train {run / 'recipe.yaml'} --run {run}-2 training.start={run}; to resume this one" in said
    (run / "data.json").unlink()
    again = weft("train", moved / toy.name, "--run", run, "training.max_updates=5", *within(moved))
    assert re.search(r"expected \d+ batches in epoch \d+, .*got \d+", refused(again))


def test_how_it_is_trained_and_searched_may_change(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "training.max_updates=3").code == 0
    changes = "training.max_updates=5", "training.optimiser.lr=0.001", "decoding.beam=2"
    answer = weft("train", toy, "--run", run, *changes, code=0)
    assert "after 5 updates" in answer.out
    assert "lr: 0.001" in (run / "recipe.yaml").read_text()


def test_a_mistake_that_shows_before_the_first_save_is_mended_in_place(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert weft("train", toy, "--run", run, "data.vocabulary.size=3").code == 2
    weft("train", toy, "--run", run, "training.max_updates=2", "data.vocabulary.size=13", code=0)
    stop = stopped(toy, tmp_path / "late", 1)
    assert stop.code == 143


def test_a_vocabulary_that_no_longer_fits_is_learnt_anew(toy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (toy.parent / "valid.yy").write_bytes(b"\xff\n")
    assert weft("train", toy, "--run", run).code == 2
    assert (run / "tokenizer.source.json").exists()  # it came as far as that
    corpus.make(toy.parent)
    changes = "data.vocabulary.kind=character", "training.max_updates=1"
    assert weft("train", toy, "--run", run, *changes).code == 0
    assert weft("predict", run, stdin=b"alpha\n").code == 0
    assert "Prepend" not in (run / "tokenizer.source.json").read_text()
