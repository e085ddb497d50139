"""Imported language models as ONNX: the program reads and writes texts whole, as `weft predict` does."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from weft.tasks.language.decoding import ProseSettings

pytest.importorskip("onnxscript", reason="pip install -e .[export]")
pytest.importorskip("transformers", reason="pip install --group import-tests")

from tests.commands.exporting import exported, run_program
from tests.commands.shell import refused, weft
from tests.importing.language_models import write_checkpoint
from weft.export.formats.onnx import program
from weft.importing.runs import import_run
from weft.run import open_run

LINES = [
    "Click the button.",
    "",
    "中文 and ünicode 🙂 ",
    "  x",
    "I'LL pay 1234567 €",
    "<s> a </s> <|endoftext|> b",
]
WHOLE = [
    "Click.\n\nOpen a file\n",
    "\n x",
    "中文\n\t🙂",
    "",
    "a" * 130,
]  # the last is longer than all positions


@pytest.fixture(scope="module", params=["gpt2", "llama-2", "llama-3", "qwen3"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    there: Path = tmp_path_factory.mktemp("run")
    write_checkpoint(request.param, there / "checkpoint")
    import_run(there / "checkpoint", there / "run")
    recipe = there / "run" / "recipe.yaml"
    changed = (
        recipe.read_text()
        .replace("max_lines: 1", "max_lines: 3")
        .replace("max_tokens: 100", "max_tokens: 23")
    )
    recipe.write_text(changed)
    exported(there / "run", there / "out")
    return there


@pytest.mark.parametrize("beam", [1, 3])
def test_it_answers_as_predict_does(run: Path, beam: int) -> None:
    text = "".join(f"{line}\n" for line in LINES)
    ours = weft("predict", run / "run", "--beam", str(beam), stdin=text.encode()).lines
    assert run_program(run / "out", text, "--beam", str(beam)) == ours
    assert len(ours) >= len(LINES) and any(len(line) > 40 for line in ours)
    opened, model = open_run(run / "run", device="cpu"), program(run / "out")
    predictor: Any = opened.pipeline.predictor(opened.model, ProseSettings(search={"beam": beam}))
    for whole in WHOLE:
        assert model(whole, beam=beam) == predictor.predict(whole)


def test_sampling_ends_and_begins_as_the_text(run: Path) -> None:
    model = program(run / "out")
    for whole in WHOLE:
        found = model(whole, seed=3)
        assert found.startswith(whole) and found == model(whole, seed=3)


def test_a_tokenizer_that_the_page_may_read_in_another_way_is_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "checkpoint", tmp_path / "checkpoint")
    file = tmp_path / "checkpoint" / "tokenizer.json"
    normalizer = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}]}
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"normalizer": normalizer}), "utf-8")
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    said = refused(weft("export", tmp_path / "run", "--to", "web", "--output", tmp_path / "out"))
    assert "NFKC" in said and "--to onnx" in said and not (tmp_path / "out").exists()
