"""A model with learned positions has a longest text: one that is longer ends nothing, and is named."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.commands import corpus, labelled
from tests.commands.prose import make as make_prose
from tests.commands.shell import Answer, evaluated, unanswered, weft
from weft.run import open_run
from weft.tasks.language.data import EOS

POSITIONS = 11
LONG = "beta " * 17
ENCODER = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 13, positions: learned, "
    f"max_length: {POSITIONS}}}"
)
MODEL = [f"model.encoder={ENCODER}", f"model.decoder={ENCODER}", "model.embedding.size=12"]
REASON = (
    f"expected at most {POSITIONS} positions, got 17; shorten the text, "
    "or train a model with a larger max_length"
)
SETTINGS = ("training.max_updates=20", "training.validate_every=10", "training.device=cpu")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose validation and test data have a source, and a target, for which there are no positions."""
    folder = tmp_path_factory.mktemp("short")
    recipe = corpus.make(folder / "toy")
    for split in ("valid", "test"):
        for side, lines in (("xx", (LONG, "alpha")), ("yy", ("due due", "uno " * 17))):
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
    _, found = evaluated(short, "--data", tmp_path / "fit")
    assert scores["perplexity"] == pytest.approx(found["scores"]["perplexity"]["value"], rel=1e-4)


def test_an_evaluation_scores_an_empty_line_and_names_the_source(short: Path, tmp_path: Path) -> None:
    answer, found = evaluated(short, "--output", tmp_path / "out")
    assert unanswered(answer) == [f"weft: test xx-yy:18: {REASON}"]
    assert "1 without an answer (scored as empty)" in answer.unfolded
    outputs = (tmp_path / "out").read_text().splitlines()
    assert len(outputs) == 19 and outputs[17] == "" and outputs[18] != ""
    assert found["unanswered"] == 1


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
    answer, found = evaluated(short, "--score", given, "--output", out)
    assert unanswered(answer) == [f"weft: {given}:18: {REASON}"]
    assert "18 translations, 1 that the model cannot score, log-probability" in answer.unfolded
    rows = out.read_text().split("\n")
    assert rows[17] == rows[19] == "" and all(row.endswith("\t2\tuno") for row in rows[:17])
    assert found["unanswered"] == 1 and found["lines"][17]["logp"] is None
    total = sum(float(row.split("\t")[0]) for row in rows if row)
    assert found["scores"]["perplexity"]["value"] == pytest.approx(math.exp(-total / 36), rel=1e-4)


def trained(recipe: Path, *changes: str) -> Answer:
    return weft("train", recipe, "--run", recipe.parent / "run", *SETTINGS, *changes, code=0)


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_a_classifier(tmp_path: Path) -> None:
    recipe, long = labelled.make_texts(tmp_path / "toy"), "fine " * 17
    add(tmp_path / "toy" / "train.txt", f"__label__good {long}\n")
    add(tmp_path / "toy" / "valid.tsv", f"{long}\tgood\n")
    add(tmp_path / "toy" / "test.csv", f'29,"{long}",good\n')
    answer = trained(recipe, f"model.encoder={ENCODER}")
    assert f"(0 cut at 400 tokens, 1 left out, longer than the model's {POSITIONS} positions)" in answer.err
    assert answer.err.count(f"validation:25: {REASON}") == 1
    out = tmp_path / "out"
    answer, found = evaluated(tmp_path / "toy" / "run", "--output", out)
    assert unanswered(answer) == [f"weft: test.csv:31: {REASON}"]
    assert "30 texts, 1 without an answer (scored as wrong)" in answer.unfolded
    outputs = out.read_text().split("\n")[:-1]
    labels = [label for label, _ in labelled.texts(29, 3)]
    assert len(outputs) == 30 and outputs[29] == "" and found["unanswered"] == 1
    right = sum(ours == theirs for ours, theirs in zip(outputs, labels, strict=False))
    assert found["scores"]["accuracy"]["value"] == pytest.approx(right / 30, abs=1e-9)
    rows = {row["label"]: row for row in found["classes"]}
    assert set(rows) == {"good", "bad"} and rows["good"]["there"] == labels.count("good") + 1
    assert sum(row["predicted"] for row in rows.values()) == sum(map(sum, found["confusion"])) == 29


def test_a_tagger(tmp_path: Path) -> None:
    recipe, long = labelled.make_sentences(tmp_path / "toy"), "telo\tNOUN\n" * 17
    rows = [f"{n}\ttelo\ttelo\tNOUN\t_\t_\t0\tdep\t_\t_\n" for n in range(1, 18)]
    for name in ("train", "test"):
        add(tmp_path / "toy" / f"{name}.conllu", "".join(rows) + "\n")
    (tmp_path / "toy" / "valid.txt").write_text(f"beding\tVERB\n\n{long}\n")
    answer = trained(
        recipe, f"model.encoder={ENCODER}", "model.crf=false", "data.hold_out=0", "data.valid=toy/valid.txt",
        f"data.folder={tmp_path}",
    )  # fmt: skip
    assert f"training sentences: 200 of 201 kept (1 longer than {POSITIONS} words)" in answer.err
    assert answer.err.count(f"validation:3: {REASON}") == 1
    out = tmp_path / "out"
    answer, found = evaluated(tmp_path / "toy" / "run", "--output", out)
    lines = (tmp_path / "toy" / "test.conllu").read_text().split("\n")
    place = len(lines) - 18
    assert unanswered(answer) == [f"weft: test.conllu upos:{place}: {REASON}"]
    assert "30 sentences" in answer.unfolded and "1 without an answer (scored as wrong)" in answer.unfolded
    written = out.read_text().split("\n")
    assert [line.split("\t")[3] for line in written if line.startswith("17\t")] == ["_"]
    words = [line for line in lines if line[:1].isdigit() and "-" not in line.split("\t")[0]]
    ours = [line for line in written if line[:1].isdigit() and "-" not in line.split("\t")[0]]
    right = sum(one == other for one, other in zip(words, ours, strict=True))
    assert found["scores"]["tag accuracy"]["value"] == pytest.approx(right / len(words), abs=1e-9)


def test_a_language_model_that_reads_lines(tmp_path: Path) -> None:
    recipe = make_prose(tmp_path / "toy", batches="lines")
    long = " ".join(["the cat sat on a mat and one dog ran home ."] * 2)
    for name in ("train", "valid"):
        add(tmp_path / "toy" / f"{name}.txt", f"{long}\n")
    answer = trained(recipe, f"model.decoder={ENCODER.replace(', inner: 13', '')}")
    assert f"in 212 lines (1 left out, longer than the model's {POSITIONS} positions)" in answer.err
    out = tmp_path / "out"
    answer = weft("evaluate", tmp_path / "toy" / "run", "--split", "valid", "--output", out, code=0)
    assert f"context:the line, in windows of {POSITIONS} where it is longer (lines 24)|" in answer.unfolded
    # the last line by hand: windows of 11 tokens, each read alone
    opened = open_run(tmp_path / "toy" / "run", device="cpu")
    row = [EOS, *opened.pipeline.vocabulary.encode(long), EOS]
    total = 0.0
    for begin in (0, 11, len(row) - 1 - 11):
        part = torch.tensor([row[begin : begin + POSITIONS + 1]])
        state = opened.model.start(None, torch.ones(1, 1, dtype=torch.bool))
        with torch.no_grad():
            h = opened.model.decoder(opened.model.embed(part[:, :-1]), state)[0]
            logp = opened.model.head(h)[0].gather(1, part[0, 1:, None])[:, 0].double().numpy()
        total += float(logp[-(len(row) - 1 - 22) :].sum() if begin > 11 else logp.sum())
    np.testing.assert_allclose(float(out.read_text().splitlines()[23]), total, atol=1e-3)
