"""Objectives from the command line: a run begins from another, stops, goes on, and keeps its model alone."""

import shutil
from pathlib import Path

import pytest
import safetensors

from tests.commands import corpus
from tests.commands.corpus import stopped
from tests.commands.shell import weft

FEW = ("training.max_updates=9", "training.validate_every=5", "model.decoder.dropout=0.2")
PROFESSOR = "training.objective={use: professor_forcing, size: 5, fools_above: 0.0, learns_below: 1.0}"
RISK = "training.objective={use: minimum_risk, candidates: 4, likelihood: 0.1}"


def names(path: Path) -> set[str]:
    with safetensors.safe_open(path, "pt") as file:
        return set(file.keys())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates, trained by professor forcing."""
    folder = tmp_path_factory.mktemp("objectives")
    weft("train", corpus.make(folder / "toy"), "--run", folder / "run", *FEW, PROFESSOR, code=0)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(PROFESSOR, id="professor_forcing"),
        pytest.param(RISK, id="minimum_risk", marks=pytest.mark.slow),
    ],
)
def test_stopped_and_gone_on_with_is_the_unbroken_run(
    toy: Path, trained: Path, tmp_path: Path, objective: str
) -> None:
    changes = (*FEW, objective, *((f"training.start={trained}",) if objective == RISK else ()))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes).code == 0
    assert stopped(toy, broken, 7, *changes).code == 143
    if objective == RISK:
        (trained / "model.safetensors").rename(trained / "elsewhere")  # what was copied is enough
    try:
        assert weft("train", toy, "--run", broken, *changes).code == 0
    finally:
        if objective == RISK:
            (trained / "elsewhere").rename(trained / "model.safetensors")
    last = [run / "checkpoints" / "step-00000009" for run in (whole, broken)]
    kept = {path.name for path in last[0].glob("*.safetensors")}
    assert ("objective.safetensors" in kept) == (objective == PROFESSOR)
    for name in kept:
        assert (last[0] / name).read_bytes() == (last[1] / name).read_bytes(), name


def test_the_discriminator_is_no_part_of_the_model(trained: Path) -> None:
    assert not any(
        "judge" in name or name.startswith("objective") for name in names(trained / "model.safetensors")
    )
    inside = names(trained / "checkpoints" / "step-00000009" / "objective.safetensors")
    assert "judge.0.weight" in inside
    assert weft("predict", trained, stdin=b"alpha beta\n").code == 0


def test_a_run_begins_where_another_ended(toy: Path, trained: Path, tmp_path: Path) -> None:
    run, first = tmp_path / "next", tmp_path / "first"
    shutil.copytree(trained, first)
    (first / "scores.json").write_text("{}")  # a user's, of the first run and not of the next
    changes = (*FEW, f"training.start={first}", "training.optimiser.lr=0", "training.max_updates=1")
    assert weft("train", toy, "--run", run, *changes).code == 0
    for name in ("tokenizer.source.json", "tokenizer.target.json"):
        assert (run / name).read_bytes() == (trained / name).read_bytes()
    assert not (run / "scores.json").exists()
    text = b"alpha beta gamma\n"
    assert weft("predict", run, stdin=text).out == weft("predict", trained, stdin=text).out


def test_another_objective_in_the_middle_and_another_model_are_refused(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    changes = ("training.max_updates=10", "training.objective=likelihood")
    answer = weft("train", trained / "recipe.yaml", "--run", trained, *changes)
    assert answer.code == 2
    assert "was trained with an objective that has weights of its own" in answer.err
    other = (f"training.start={trained}", "model.embedding.size=23")
    answer = weft("train", toy, "--run", tmp_path / "other", *FEW, *other)
    assert answer.code == 2 and "contains a different model from the recipe" in answer.err
    assert "name the parts to take, such as training.start_parts" in answer.err
    answer = weft(
        "train", toy, "--run", tmp_path / "mixed", *FEW, RISK, "training.feeding={use: constant, p: 0.5}"
    )
    assert answer.code == 2 and "training.feeding={use: constant, p: 0.5}: " in answer.err
