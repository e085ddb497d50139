"""What `weft export` refuses and where it writes; words in context as ONNX."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests import toys
from tests.commands.exporting import answers, exported
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.export.format import Format
from weft.export.formats.huggingface import HuggingFace
from weft.export.formats.onnx import Onnx, program
from weft.export.formats.tokenizer import TokenizerOnly
from weft.export.quantise import share
from weft.store.run_directory import lock


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

    monkeypatch.setattr("weft.export.quantise.share", spoil)
    said = refused(weft("export", trained, "--to", "onnx", "--output", tmp_path / "out"))
    assert "answers equal Weft's" in said and list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_trained_is_refused(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    with lock(run):
        said = refused(weft("export", run, "--to", "onnx", "--output", tmp_path / "out"))
    assert "is still being trained" in said and [path.name for path in tmp_path.iterdir()] == ["run"]


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
    assert "line 2: 'lake' is no word of 'the bank'" in second
    assert "line 3: expected at most 200 words" in third
