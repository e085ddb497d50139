"""Classes of pictures and clips, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import weft as package
from tests import toys
from tests.commands.shell import refused, untouched, weft
from tests.shared import shared_run


def train(recipe: Path, *changes: str):
    return weft("train", recipe, "--run", recipe.parent / "run", f"data.folder={recipe.parent}", *changes)


@pytest.fixture(scope="module")
def run() -> Path:
    return shared_run("images")


def test_a_folder_a_file_and_names_are_answered_alike(run: Path) -> None:
    circles = run.parent / "toy" / "train" / "circle"
    whole = weft("predict", run, circles).lines
    assert len(whole) == len(list(circles.iterdir())) and set(whole) <= {
        "circle",
        "cross",
        "square",
        "triangle",
    }
    names = "".join(f"{path}\n" for path in sorted(circles.iterdir()))
    assert weft("predict", run, stdin=names.encode()).lines == whole
    first = min(circles.iterdir())
    assert package.load(run).predict(first) == whole[0]
    (line,) = weft("predict", run, first, "--scores").lines
    probs = [float(cell.rpartition("=")[2]) for cell in line.split("\t")[1:]]
    assert probs == sorted(probs, reverse=True) and sum(probs) == pytest.approx(1, abs=1e-3)


def test_evaluate_prints_the_baseline_and_draws_the_confusion(run: Path, tmp_path: Path) -> None:
    picture, figures = tmp_path / "confusion.svg", tmp_path / "all.json"
    folder = run.parent / "toy" / "train"
    answer = weft("evaluate", run, "--data", folder, "--plot", picture, "--json", figures, code=0)
    for shown in ("20 pictures", "accuracy", "macro F1", "baseline: most frequent class"):
        assert shown in answer.out
    assert sum(map(sum, json.loads(figures.read_text())["confusion"])) == 20
    assert "predicted class" in picture.read_text("utf-8")


def test_clips_are_classified_too_and_init_writes_the_recipe(tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy", clips=True)
    written = tmp_path / "mine.yaml"
    answer = weft("init", "images", "--train", recipe.parent / "train", "-o", written)
    assert answer.code == 0 and "4 classes, 20 clips" in answer.out, answer.err
    assert "split_seed: 1" in written.read_text()
    changes = ("model.front.sizes=[3, 5]", "training.max_updates=1", "data.hold_out=5", "data.frames=2")
    weft("train", written, "--run", tmp_path / "run", *changes, code=0)
    assert len(weft("predict", tmp_path / "run", recipe.parent / "train" / "right").lines) > 0


def test_what_is_wrong_is_one_sentence_each(tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy")
    first = min((recipe.parent / "train" / "circle").iterdir())
    kept = first.read_bytes()
    first.write_bytes(b"no")
    assert f"{first.name}: damaged, or no picture" in refused(train(recipe))
    found = weft("data", "check", recipe.parent / "train", "--task", "images")
    assert found.code == 1 and f"{first.name}: damaged" in found.out
    Image.fromarray(np.zeros((9, 12, 3), np.uint8)).save(first)
    assert "9 x 12 x 3" in refused(train(recipe))
    assert "set data.size" in weft("data", "check", recipe.parent / "train", "--task", "images").out
    first.write_bytes(kept)
    (recipe.parent / "train" / "empty").mkdir()
    assert "empty: expected pictures or clips" in untouched(recipe.parent, lambda: train(recipe))
    assert "no such folder" in refused(train(recipe, "data.train=gone"))


def test_init_lets_one_place_see_the_whole_picture(tmp_path: Path) -> None:
    for side, stages in ((12, 3), (32, 4), (64, 5)):
        for name in ("a", "b"):
            folder = tmp_path / str(side) / name
            folder.mkdir(parents=True)
            Image.fromarray(np.zeros((side, side, 3), np.uint8)).save(folder / "1.png")
        text = weft("init", "images", "--train", tmp_path / str(side), "-o", tmp_path / f"{side}.yaml").out
        assert f"sizes: {[32, 64, 128, 128, 128][:stages]}, non_local" in text
