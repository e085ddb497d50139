"""Words in context from text to a tagger that stands on them, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests.commands.shell import unanswered, weft
from tests.shared import run_fixture

run = run_fixture("elmo")


def test_both_perplexities_are_printed_and_beat_word_frequencies(run: Path, tmp_path: Path) -> None:
    answer = weft("evaluate", run, "--split", "valid", "--json", tmp_path / "all.json", code=0)
    assert "forward perplexity" in answer.out and "backward perplexity" in answer.out
    assert "softmax:full" in answer.out and "worse" not in answer.out
    found = json.loads((tmp_path / "all.json").read_text())["scores"]
    # Of five predictions a line one is a coin: 2^(1/5) = 1.149; the short lines cost a little more.
    assert all(
        1.1 < one["value"] < 1.6 and one["baselines"]["word frequencies"] > 3 for one in found.values()
    )


def test_an_evaluation_writes_the_log_probabilities_of_each_line(run: Path, tmp_path: Path) -> None:
    lines = ["go the bank now", "", "the bank " * 5, "bank"]  # seven words fit
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    files = {name: tmp_path / name for name in ("out.tsv", "scores.json")}
    given = ("--data", tmp_path / "text.txt", "--output", files["out.tsv"], "--json", files["scores.json"])
    weft("evaluate", run, *given, code=0)
    logp = np.array(
        [list(map(float, line.split("\t"))) for line in files["out.tsv"].read_text().splitlines()]
    )
    assert logp.shape == (4, 2) and (logp[1] == 0).all() and (logp[[0, 2, 3]] < 0).all()
    scores = json.loads(files["scores.json"].read_text())["scores"].values()
    whole = [-np.log(one["value"]) * one["size"] for one in scores]
    assert logp.sum(0) == pytest.approx(whole, abs=1e-3)


def test_one_word_has_two_vectors_in_two_contexts(run: Path) -> None:
    answer = weft("predict", run, stdin=b"bank\tgo the bank now\tthe bank\n", code=0)
    word, *layers = answer.out.strip().split("\t")
    assert word == "bank" and float(layers[0]) == 1.0 and float(layers[2]) < 0.999
    comparer = package.load(run)
    assert comparer.vectors("go the bank now").layers.shape == (3, 4, 22)
    assert comparer.compare("bank", "the bank", "the bank") == pytest.approx([1, 1, 1], abs=1e-6)


def test_wrong_lines_are_named(run: Path) -> None:
    columns, word = unanswered(weft("predict", run, stdin=b"bank\tbank\nbank\ta\tthe bank\n"))
    assert (
        "standard input:1: expected a sentence, or 3 columns" in columns
        and "'bank' is no word of 'a'" in word
    )
