"""A text for which classifiers, taggers and language models have no positions ends nothing, and is named."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.commands import labelled
from tests.commands.prose import make as make_prose
from tests.commands.shell import Answer, unanswered, weft
from weft.run import open_run
from weft.tasks.language.data import EOS

POSITIONS = 11
ENCODER = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 13, positions: learned, "
    f"max_length: {POSITIONS}}}"
)
REASON = (
    f"expected at most {POSITIONS} positions, got 17; shorten the text, "
    "or train a model with a larger max_length"
)
SETTINGS = ("training.max_updates=20", "training.validate_every=10", "training.device=cpu")


def trained(recipe: Path, *changes: str) -> Answer:
    answer = weft("train", recipe, "--run", recipe.parent / "run", *SETTINGS, *changes, code=0)
    return answer


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
    out, figures = tmp_path / "out", tmp_path / "all.json"
    answer = weft("evaluate", tmp_path / "toy" / "run", "--output", out, "--json", figures)
    assert unanswered(answer) == [f"weft: test.csv:31: {REASON}"]
    assert "30 texts, 1 without an answer (scored as wrong)" in answer.unfolded
    outputs, found = out.read_text().split("\n")[:-1], json.loads(figures.read_text())
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
    out, figures = tmp_path / "out", tmp_path / "all.json"
    answer = weft("evaluate", tmp_path / "toy" / "run", "--output", out, "--json", figures)
    lines = (tmp_path / "toy" / "test.conllu").read_text().split("\n")
    place = len(lines) - 18
    assert unanswered(answer) == [f"weft: test.conllu upos:{place}: {REASON}"]
    assert "30 sentences" in answer.unfolded and "1 without an answer (scored as wrong)" in answer.unfolded
    written, found = out.read_text().split("\n"), json.loads(figures.read_text())
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
