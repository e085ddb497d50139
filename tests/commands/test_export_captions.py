"""Captioners as ONNX: the program describes pictures as `weft predict` does."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import weft as package
from tests import toys
from tests.commands.exporting import answers, exported, odd_pictures
from tests.commands.shell import unanswered, weft
from tests.commands.test_caption import train
from tests.shared import shared_run
from weft.export.formats.onnx import program

pytestmark = pytest.mark.slow  # each export takes seconds; test_export_onnx.py has the leading one

MODELS = {
    "gru": [],
    "lstm": [
        "model.encoder={use: non_local}",
        "model.decoder={use: recurrent, cell: lstm, sizes: [13], enters: both}",
    ],
    "transformer": [
        "model.front={use: patches, size: 12, patch: 3}",
        "model.encoder={use: transformer, size: 12, num_layers: 1, num_heads: 2}",
        "model.decoder={use: transformer, size: 12, num_layers: 1, num_heads: 2}",
    ],
}


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_a_captioner(changes: list[str], tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    faster = ("data.size=12", "training.max_updates=400", "training.validate_every=400")
    trained = train(recipe, "training.optimiser={use: adam, lr: 0.003}", *faster, *changes)
    assert trained.code == 0, trained.err
    run = recipe.parent / "run"
    said = exported(run, tmp_path / "out").out
    assert "answers equal to Weft's: 20 of 20" in said, said
    files = [*odd_pictures(tmp_path / "odd"), *sorted((recipe.parent / "pictures").iterdir())]
    names = "".join(f"{file}\n" for file in files)
    for beam in ("1", "3"):
        found = answers(tmp_path / "out", names, "--beam", beam, without=())
        assert found.returncode == 0, found.stderr
        ours = weft("predict", run, "--beam", beam, stdin=names.encode()).lines
        assert found.stdout.splitlines() == ours and len(set(ours)) > 1, ours
    model = program(tmp_path / "out")
    assert model(files[-1].read_bytes()) == model(files[-1]) == package.load(run).predict(files[-1])


def test_given_features(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    draw = np.random.default_rng(1)
    for path in list((recipe.parent / "pictures").iterdir()):
        np.save(path.with_suffix(".npy"), draw.normal(size=(3, 5)))
    for name in ("train.tsv", "valid.tsv"):
        text = (recipe.parent / name).read_text()
        (recipe.parent / name).write_text(text.replace(".png", ".npy"))
    changes = ("training.max_updates=100", "training.validate_every=100")
    answer = train(recipe, "model.front={use: regions, size: 7}", *changes)
    assert answer.code == 0, answer.err
    run = recipe.parent / "run"
    exported(run, tmp_path / "out")
    files = sorted((recipe.parent / "pictures").glob("*.npy"))
    names = "".join(f"{file}\n" for file in files)
    found = answers(tmp_path / "out", names, without=("PIL.PngImagePlugin",))
    assert found.stdout.splitlines() == weft("predict", run, stdin=names.encode()).lines
    model = program(tmp_path / "out")
    assert model(files[0].read_bytes()) == model(files[0])


def test_generated_pictures_are_scored_and_int8_says_what_it_costs(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    text = recipe.read_text()
    line = next(line for line in text.splitlines() if line.startswith("data:"))
    recipe.write_text(text.replace(line, "data: {generated: shapes, size: 12, examples: 40}"))
    assert train(recipe, "data.valid_examples=23").code == 0
    said = exported(recipe.parent / "run", tmp_path / "out", "--int8").out
    assert "answers equal to Weft's: 20 of 20" in said and "CIDEr-D of 23 validation inputs: " in said, said
    photo = odd_pictures(tmp_path / "odd")[0]  # scaled to the size of the model's pictures
    found = answers(tmp_path / "out", f"{photo}\n", without=())
    assert found.returncode == 0 and len(found.stdout.splitlines()) == 1


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    run = shared_run("caption")
    exported(run, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "weft.json").read_text())["shape"] == [12, 12, 3]
    good = min((run.parent / "toy" / "pictures").iterdir())
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "nan.npy", np.full((12, 12, 3), np.nan))
    Image.fromarray(np.zeros((24, 12, 3), np.uint8)).save(tmp_path / "large.png")
    lines = [*(tmp_path / name for name in ("gone.png", "text.png", "bad.npy", "nan.npy", "large.png")), good]
    names = "".join(f"{line}\n" for line in lines)
    found = answers(tmp_path / "out", names, without=())
    ours = weft("predict", run, stdin=names.encode())
    assert found.returncode == ours.code == 3 and found.stdout == ours.out
    assert len(found.stderr.splitlines()) == len(unanswered(ours)) == 5
    assert "line 5: " in found.stderr and "expected 12 x 12 x 3" in found.stderr
