"""Words in context as ONNX: the program gives the vectors that Weft gives, without Weft and torch."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests import toys
from tests.commands.exporting import answers, exported
from tests.commands.shell import weft
from tests.shared import shared_run
from weft.export.formats.onnx import program

pytestmark = pytest.mark.slow  # an export takes seconds

SENTENCES = [
    "go the bank now",
    "bank",
    "  The\u00a0BANK, é\u0301 ﬁ",
    "x" * 40 + " lake 中文",
    "a-b (c) 12 the lake.",
]
PAIRS = ["bank\tgo the bank now\tthe bank", "the\tthe\tgo the lake now the bank"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((), id="space"),
        pytest.param(
            ("data.vocabulary.kind=word", "data.vocabulary.lowercase=true", "model.residual=false"),
            id="word",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_vectors_are_those_of_weft(change: tuple[str, ...], tmp_path: Path) -> None:
    run = tmp_path / "run" if change else shared_run("elmo")
    if change:
        changes = ("training.max_updates=5", *change)
        weft("train", toys.contexts(tmp_path / "toy"), "--run", run, *changes, code=0)
    said = exported(run, tmp_path / "out")
    assert "answers equal to Weft's: 20 of 20" in said.out
    ours, theirs = package.load(run), program(tmp_path / "out")
    for text in SENTENCES:
        words, layers = ours.vectors(text)
        found = theirs.vectors(text)
        assert found.words == words and found.layers.shape == (3, len(words), 22)
        np.testing.assert_allclose(found.layers, layers, atol=1e-5)
    lines = "".join(f"{pair}\n" for pair in PAIRS)
    done = answers(tmp_path / "out", lines + "".join(f"{text}\n" for text in SENTENCES), without=())
    assert done.returncode == 0, done.stderr
    pairs, alone = done.stdout.splitlines()[:2], done.stdout.splitlines()[2:]
    assert pairs == weft("predict", run, stdin=lines.encode()).lines
    for text, line in zip(SENTENCES, alone, strict=True):
        found = json.loads(line)
        assert found["words"] == ours.vectors(text).words
        np.testing.assert_allclose(found["vectors"], ours.vectors(text).layers[-1], atol=2e-5)
    wrong = answers(tmp_path / "out", "\nlake\tthe bank\tthe lake\n" + "a " * 201 + "\n", without=())
    first, second, third = wrong.stderr.splitlines()
    assert wrong.returncode == 3 and "line 1: expected a sentence with words" in first
    assert (
        "line 2: 'lake' is no word of 'the bank'" in second and "line 3: expected at most 200 words" in third
    )
