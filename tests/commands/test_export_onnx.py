"""`weft export --to onnx`: the program answers as `weft predict` does, without Weft and torch."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests.commands.exporting import exported, run_program, run_translator, same
from tests.commands.prose import GPT, RECIPE, RECURRENT, write
from tests.commands.shell import refused, weft
from tests.export.runs import TEXTS, translator
from tests.shared import quick_first, shared_run
from weft.export.format import Format
from weft.export.formats.huggingface import HuggingFace
from weft.export.formats.onnx import Onnx
from weft.export.formats.tokenizer import TokenizerOnly
from weft.export.shared import share
from weft.store.locks import lock

LINES = ["the cat sat", "", "  one dog ran home .", "the <eos> sat", "zebra é\u0301 ﬁ", "on\u00a0a mat", "."]


def inputs(run: Path) -> list[str]:
    """Lines of validation text, and odd ones."""
    folder = next(run.parent.glob("toy"))
    lines = [line for file in sorted(folder.glob("valid*")) for line in file.read_text().splitlines()]
    return [*LINES, *lines][:60]


@pytest.mark.slow
def test_a_translator(trained: Path, tmp_path: Path) -> None:
    answer = exported(trained, tmp_path / "out")
    assert "answers equal to Weft's: " in answer.out and "weights.bin" in answer.out
    about = json.loads((tmp_path / "out" / "weft.json").read_text())
    assert about["kind"] == "rewrite" and about["sos"] == 2 and about["state"]  # how to drive the graphs
    text = "".join(f"{line}\n" for line in inputs(trained))
    for beam in (1, 5):
        ours = weft("predict", trained, "--beam", beam, stdin=text.encode()).lines
        assert same(ours, run_translator(tmp_path / "out", text, "--beam", str(beam))), beam
        assert len(set(ours)) > 5


VARIANTS: list[dict[str, Any]] = [
    {},
    {"positions": "rotary", "norm": "after", "activation": "swiglu"},
    {"positions": "learned", "max_length": 128, "vocabulary": {"kind": "unigram", "shared": False}},
    {"positions": "relative", "norm_kind": "rms", "vocabulary": {"kind": "word", "lowercase": True}},
]


@pytest.mark.parametrize("settings", quick_first({str(each): each for each in VARIANTS}, 0))
def test_a_transformer_with_random_weights(settings: dict[str, Any], tmp_path: Path) -> None:
    run = translator(tmp_path / "run", **settings)
    exported(run, tmp_path / "out")
    lines = [*LINES, *TEXTS[:40]]
    text = "".join(f"{line}\n" for line in lines)
    ours = weft("predict", run, stdin=text.encode()).lines
    assert same(ours, run_translator(tmp_path / "out", text))


@pytest.mark.parametrize(
    ("kind", "decoder", "batches"),
    [
        pytest.param("word", RECURRENT, "stream", id="recurrent", marks=pytest.mark.slow),
        pytest.param("character", GPT, "windows", id="gpt", marks=pytest.mark.slow),
    ],
)
def test_a_language_model(tmp_path: Path, kind: str, decoder: str, batches: str) -> None:
    folder = write(tmp_path / "toy")
    recipe = folder / "x.yaml"
    recipe.write_text(RECIPE.format(folder=folder, kind=kind, decoder=decoder, batches=batches, updates=30))
    assert weft("train", recipe, "--run", tmp_path / "run").code == 0
    exported(tmp_path / "run", tmp_path / "out")
    text = "".join(f"{line}\n" for line in inputs(tmp_path / "run")[:30])
    for beam in ("1", "3"):
        ours = weft("predict", tmp_path / "run", "--beam", beam, stdin=text.encode()).lines
        assert run_program(tmp_path / "out", text, "--beam", beam) == ours
    sampled = run_program(tmp_path / "out", text)
    assert sampled == run_program(tmp_path / "out", text) and len(sampled) == 30


@pytest.mark.slow
def test_int8_says_what_it_costs(trained: Path, tmp_path: Path) -> None:
    answer = exported(trained, tmp_path / "out", "--int8")
    assert "8-bit weights: " in answer.out and "BLEU of " in answer.out
    card = (tmp_path / "out" / "README.md").read_text()
    assert "8-bit weights: " in card and "weft_onnx.py" in card
    assert len(run_program(tmp_path / "out", "the cat\n")) == 1
    onnx = pytest.importorskip("onnx")
    kinds = {node.op_type for node in onnx.load(tmp_path / "out" / "start.onnx").graph.node}
    assert any("Integer" in kind or "Quantize" in kind for kind in kinds), kinds


@pytest.mark.parametrize(
    ("to", "usual"), [("onnx", "{}-onnx"), ("web", "{}.html"), ("argos", "{}.argosmodel")]
)
def test_an_output_is_named_after_run_and_format(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, usual: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = usual.format(trained.name)
    Path(name).mkdir()
    assert f"{name}: already exists" in refused(weft("export", trained, "--to", to))


def test_refusals_leave_nothing(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "did you mean 'web'" in refused(weft("export", trained, "--to", "html", "--output", out))
    assert "did you mean 'onnx'" in refused(weft("export", trained, "--to", "onxx", "--output", out))
    assert "--to FORMAT" in refused(weft("export", trained))
    assert "no recipe.yaml" in refused(weft("export", tmp_path, "--to", "onnx", "--output", out))
    assert not out.exists()
    out.mkdir()
    assert "already exists" in refused(weft("export", trained, "--to", "onnx", "--output", out))
    assert list(out.iterdir()) == [] and [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_the_files_that_are_compared_are_those_that_are_written(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(paths: list[Path], weights: Path) -> None:
        share(paths, weights)
        content = np.frombuffer(weights.read_bytes(), np.float32)
        weights.write_bytes((-content).tobytes())

    monkeypatch.setattr("weft.export.shared.share", spoil)
    said = refused(weft("export", trained, "--to", "onnx", "--output", tmp_path / "out"))
    assert "answers equal Weft's" in said and list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_trained_is_refused(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    with lock(run):
        said = refused(weft("export", run, "--to", "onnx", "--output", tmp_path / "out"))
    assert "is still being trained" in said and [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_a_pointer_copies_words_that_the_vocabulary_lacks(tmp_path: Path) -> None:
    run = shared_run("summarise")
    exported(run, tmp_path / "out")
    data = sorted((run.parent / "toy").glob("valid*"))[0].read_text("utf-8")
    rows = [line.partition("\t")[0] for line in data.splitlines()[1:12]]
    text = "".join(f"{row}\n" for row in [*rows, f"{rows[0]} zyxwv qwe", ""])
    ours = weft("predict", run, stdin=text.encode()).lines
    assert run_program(tmp_path / "out", text) == ours and len(set(ours)) > 3


def test_missing_libraries_are_listed(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Onnx, "packages", ("lack_a", "lack_b", "lack_c"))
    said = refused(weft("export", trained, "--to", "onnx", "--output", tmp_path / "out"))
    assert "lack_a, lack_b and lack_c are not installed; pip install lack_a lack_b lack_c" in said


@pytest.mark.parametrize(
    ("to", "form", "sentence"),
    [
        ("huggingface", HuggingFace, "--to huggingface expects a Transformer"),
        ("tokenizer", TokenizerOnly, "use --to onnx"),
    ],
)
def test_nobody_installs_libraries_for_a_run_that_the_format_cannot_express(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, form: type[Format], sentence: str
) -> None:
    monkeypatch.setattr(form, "packages", ("lack_a",))
    assert sentence in refused(weft("export", trained, "--to", to, "--output", tmp_path / "out"))


@pytest.mark.slow
def test_a_text_that_is_too_long_does_not_stop_the_others(tmp_path: Path) -> None:
    run = translator(tmp_path / "run", positions="learned", max_length=12, data={"max_length": 10})
    exported(run, tmp_path / "out")
    line = [sys.executable, str(tmp_path / "out" / "weft_onnx.py")]
    text = "a " * 99 + "\nthe cat\n"
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and done.stdout.startswith("\n") and len(done.stdout.splitlines()) == 2
    assert "line 1: expected at most 12 tokens" in done.stderr
