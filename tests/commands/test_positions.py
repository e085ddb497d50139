"""A model with learned positions has a longest text: one that is longer ends nothing, and is reported."""

import json
import math
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import unanswered, weft

POSITIONS = 11
LONG = "beta " * 13
PARTS = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 19, positions: learned, "
    f"max_length: {POSITIONS}}}"
)
MODEL = [f"model.encoder={PARTS}", f"model.decoder={PARTS}", "model.embedding.size=12"]
REASON = (
    f"expected at most {POSITIONS} positions, got 13; shorten the text, "
    "or train a model with a larger max_length"
)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose validation and test data have a source, and a target, for which there are no positions."""
    folder = tmp_path_factory.mktemp("short")
    recipe = corpus.make(folder / "toy")
    for split in ("valid", "test"):
        for side, lines in (("xx", (LONG, "alpha")), ("yy", ("due due", "uno " * 13))):
            with (folder / "toy" / f"{split}.{side}").open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
    changes = [*MODEL, "training.max_updates=40", "training.validate_every=20"]
    answer = weft("train", recipe, "--run", folder / "run", *changes, code=0)
    said = "2 of 15 validation pairs need more positions than the model has"
    assert answer.err.count(said) == 1, answer.err  # of three validations
    return folder / "run"


def test_the_loss_of_a_validation_is_that_of_the_pairs_that_fit(short: Path, tmp_path: Path) -> None:
    events = [json.loads(line) for line in (short / "metrics.jsonl").read_text().splitlines()]
    scores = [one["scores"] for one in events if one["event"] == "validation"][-1]
    for side in ("xx", "yy"):
        lines = (short.parent / "toy" / f"valid.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"fit.{side}").write_text("".join(lines[:13]))
    weft("evaluate", short, "--data", tmp_path / "fit", "--json", tmp_path / "fit.json", code=0)
    found = json.loads((tmp_path / "fit.json").read_text())["scores"]
    perplexity = found["perplexity"]["value"]
    assert scores["perplexity"] == pytest.approx(perplexity, rel=1e-4)


def test_an_evaluation_scores_an_empty_line_and_names_the_source(short: Path, tmp_path: Path) -> None:
    answer = weft("evaluate", short, "--output", tmp_path / "out", "--json", tmp_path / "scores.json")
    assert unanswered(answer) == [f"weft: test xx-yy:18: {REASON}"]
    assert "1 without an answer (scored as empty)" in answer.unfolded
    outputs = (tmp_path / "out").read_text().splitlines()
    assert len(outputs) == 19 and outputs[17] == "" and outputs[18] != ""
    assert json.loads((tmp_path / "scores.json").read_text())["unanswered"] == 1


def test_data_of_which_nothing_fits_is_refused(short: Path, tmp_path: Path) -> None:
    for side in ("xx", "yy"):
        (tmp_path / f"long.{side}").write_text(f"{LONG}\n")
    answer = weft("evaluate", short, "--data", tmp_path / "long")
    assert answer.code == 2 and "expected pairs that fit into the model's positions, got 1" in answer.err


def test_given_lines_of_pairs_that_are_too_long_have_no_score_and_are_named(
    short: Path, tmp_path: Path
) -> None:
    count, given, out = 19, tmp_path / "given.txt", tmp_path / "scores"
    given.write_text("uno\n" * count)
    answer = weft("evaluate", short, "--score", given, "--output", out, "--json", tmp_path / "all.json")
    assert unanswered(answer) == [f"weft: {given}:18: {REASON}"]
    assert "18 translations, 1 that the model cannot score, log-probability" in answer.unfolded
    rows = out.read_text().split("\n")
    assert rows[17] == rows[19] == "" and all(row.endswith("\t2\tuno") for row in rows[:17])
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["unanswered"] == 1 and found["lines"][17]["logp"] is None
    total = sum(float(row.split("\t")[0]) for row in rows if row)
    assert found["scores"]["perplexity"]["value"] == pytest.approx(math.exp(-total / 36), rel=1e-4)
