"""Masked language models as ONNX: the program fills gaps as `weft predict` does."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests import toys
from tests.commands.exporting import exported, run_program
from tests.commands.shell import weft
from tests.shared import quick_first

TEXTS = [
    "the [MASK] can purr",
    "[MASK]",
    "a [MASK] can [MASK]",
    "[MASK][MASK] can bark [MASK]",
    "  the   cat\u00a0[MASK]  purr ",
    "zebra [MASK] é\u0301 ﬁ <eos>",
    "the[MASK]purr",
    "The dog [mask] [MASK].",
]
ENCODER = "encoder: {use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.0}"
LEARNED = ENCODER.replace("}", ", positions: learned, max_length: 31}")
SHORT = LEARNED.replace("31", "13")


def trained(folder: Path, *changes: tuple[str, str]) -> Path:
    recipe = toys.gaps(folder / "toy")
    text = recipe.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    recipe.write_text(text)
    weft("train", recipe, "--run", folder / "run", "training.max_updates=30", code=0)
    return folder / "run"


MODELS: dict[str, list[tuple[str, str]]] = {
    "bpe": [("kind: word", "kind: bpe, size: 29, lowercase: true"), (ENCODER, LEARNED)],
    "words": [],
    "characters": [("kind: word", "kind: character")],
    "gru": [(ENCODER, "encoder: {use: recurrent, cell: gru, sizes: [7], bidirectional: true}")],
}


@pytest.mark.parametrize("changes", quick_first(MODELS, 0))
def test_gaps_are_filled_as_by_weft(changes: list[tuple[str, str]], tmp_path: Path) -> None:
    run = trained(tmp_path, *changes)
    answer = exported(run, tmp_path / "out")
    assert "answers equal to Weft's: 20 of 20" in answer.out
    given = "".join(f"{text}\n" for text in TEXTS)
    for options in ([], ["--scores"], ["--nbest", "3"], ["--nbest", "99", "--scores"]):
        ours = weft("predict", run, *options, stdin=given.encode())
        assert ours.code == 0 and run_program(tmp_path / "out", given, *options) == ours.lines, options


@pytest.mark.slow
def test_texts_that_cannot_be_answered_do_not_stop_the_others(tmp_path: Path) -> None:
    run = trained(tmp_path, (ENCODER, SHORT))
    exported(run, tmp_path / "out")
    text = "a dog\nthe [MASK] can purr\n" + "a " * 11 + "[MASK]\n" + "a " * 10 + "[MASK]\n"
    line = [sys.executable, str(tmp_path / "out" / "weft_onnx.py")]
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    ours = weft("predict", run, stdin=text.encode())
    assert (done.returncode, done.stdout) == (ours.code, ours.out) == (3, ours.out)
    assert "line 1: expected [MASK]" in done.stderr and "line 3: expected at most 13" in done.stderr
    assert done.stderr.count("line ") == 2 and done.stdout.splitlines()[3]
    few = subprocess.run([*line, "--nbest", "0"], input=text, capture_output=True, text=True, check=False)
    assert few.returncode == 1 and few.stderr == "--nbest: expected at least 1, got 0\n"


@pytest.mark.slow
def test_int8_says_what_it_costs(tmp_path: Path) -> None:
    run = trained(tmp_path)
    for name in ("train", "valid"):
        (tmp_path / "toy" / f"{name}.txt").unlink()  # the inputs are random words then
    answer = exported(run, tmp_path / "out", "--int8")
    assert "8-bit weights: " in answer.out and "answers equal to float32's: " in answer.out
    onnx = pytest.importorskip("onnx")
    kinds = {node.op_type for node in onnx.load(tmp_path / "out" / "pieces.onnx").graph.node}
    assert any("Integer" in kind or "Quantize" in kind for kind in kinds), kinds
    assert len(run_program(tmp_path / "out", "the [MASK] can purr\n")) == 1
