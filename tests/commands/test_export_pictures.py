"""Classifiers of pictures and clips as ONNX: the program answers as `weft predict` does."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests import toys
from tests.commands.exporting import answers, exported, odd_pictures
from tests.commands.shell import unanswered, weft
from tests.commands.test_images import train
from tests.shared import quick_first, shared_run

FRONTS = {
    "non-local": [],
    "plain": ["model.front={use: convolution, sizes: [5, 7], strides: [2, 1], coordinates: false}"],
    "recurrent": [
        "model.encoder={use: recurrent, cell: gru, sizes: [5], bidirectional: true}",
        "model.pool={use: queries, num_queries: 2}",
    ],
    "transformer": [
        "model.front={use: patches, size: 12, patch: 3}",
        "model.encoder={use: transformer, size: 12, num_layers: 1, num_heads: 2}",
    ],
}


@pytest.mark.parametrize("changes", quick_first(FRONTS, 0))
def test_a_classifier_of_pictures(changes: list[str], tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy")
    trained = train(recipe, "data.size=12", "training.max_updates=30", *changes)
    assert trained.code == 0, trained.err
    run = recipe.parent / "run"
    said = exported(run, tmp_path / "out").out
    assert "answers equal to Weft's: 20 of 20" in said, said
    files = [*odd_pictures(tmp_path / "odd"), *sorted((recipe.parent / "train").glob("*/*.png"))]
    names = "".join(f"{file}\n" for file in files)
    found = answers(tmp_path / "out", names, "--scores")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == weft("predict", run, "--scores", stdin=names.encode()).lines
    plain = [line.split("\t")[0] for line in found.stdout.splitlines()]
    assert answers(tmp_path / "out", names).stdout.splitlines() == plain
    assert json.loads((tmp_path / "out" / "weft.json").read_text())["shape"] == [12, 12, 3]


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, None])
def test_a_classifier_of_clips(size: int | None, tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy", clips=True)
    front = "model.front={use: convolution, sizes: [3, 5]}"
    trained = train(recipe, front, "data.frames=2", f"data.size={size or 'null'}")
    assert trained.code == 0, trained.err
    run = recipe.parent / "run"
    exported(run, tmp_path / "out")
    files = sorted((recipe.parent / "train").glob("*/*.npy"))
    clip = np.load(files[0])
    for name, array in (("grey", clip[..., 0]), ("floats", clip.astype(np.float32) / 255)):
        files.append(tmp_path / f"{name}.npy")
        np.save(files[-1], array)
    files.append(tmp_path / "moving.gif")
    first, *others = map(Image.fromarray, clip)
    first.save(files[-1], save_all=True, append_images=others)
    names = "".join(f"{file}\n" for file in files)
    found = answers(tmp_path / "out", names, "--scores")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == weft("predict", run, "--scores", stdin=names.encode()).lines


@pytest.mark.slow
def test_generated_pictures_are_the_examples_and_int8_says_what_it_costs(tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy")
    text = recipe.read_text().replace(
        "train: train, hold_out: 5", "generated: shapes, size: 12, examples: 40"
    )
    recipe.write_text(text)
    assert train(recipe, "data.valid_examples=7", "training.max_updates=30").code == 0
    said = exported(recipe.parent / "run", tmp_path / "out", "--int8").out
    assert "answers equal to Weft's: 20 of 20" in said and "8-bit weights: " in said, said


@pytest.mark.slow
def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    run = shared_run("images")
    exported(run, tmp_path / "out")
    good = min((run.parent / "toy" / "train" / "circle").iterdir())
    bad = {name: tmp_path / name for name in ("gone.png", "text.png", "short.png", "large.png", "bad.npy")}
    bad["text.png"].write_text("no picture")
    bad["short.png"].write_bytes(good.read_bytes()[:60])
    bad["bad.npy"].write_bytes(b"\x93NUMPY\x01\x00")
    Image.fromarray(np.zeros((24, 12, 3), np.uint8)).save(bad["large.png"])
    lines = [*map(str, bad.values()), "", str(tmp_path), f"{tmp_path}/gone.zip/x.png", str(good)]
    names = "".join(f"{line}\n" for line in lines)
    found = answers(tmp_path / "out", names)
    ours = weft("predict", run, stdin=names.encode())
    assert found.returncode == ours.code == 3 and found.stdout == ours.out
    assert len(found.stderr.splitlines()) == len(unanswered(ours)) == 8
    assert "line 4: " in found.stderr and "expected 12 x 12 x 3" in found.stderr
    assert "Traceback" not in found.stderr
