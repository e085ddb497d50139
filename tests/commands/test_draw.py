"""Text to picture, as a user types it."""

import base64
import io
from pathlib import Path

import numpy as np
from PIL import Image

import weft as package
from tests import toys
from tests.commands.shell import refused, train, weft
from tests.shared import run_fixture
from weft.config import read_recipe
from weft.run.training import begin_run

run = run_fixture("draw")


def test_each_line_is_answered_with_a_picture_and_a_sheet_shows_all(run: Path, tmp_path: Path) -> None:
    asked = b"a red circle at the top\nred\nsomething never seen\n"
    answer = weft("predict", run, "--pictures", tmp_path / "plots", stdin=asked, code=0)
    assert len(answer.lines) == 3
    for line in answer.lines:
        with Image.open(io.BytesIO(base64.b64decode(line.removeprefix("data:image/png;base64,")))) as picture:
            assert picture.size == (12, 12)
    names = ["1.png", "2.png", "3.png", "sheet.png", "sheet.svg"]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == names
    assert weft("predict", run, stdin=asked).lines == answer.lines  # the seed is the recipe's
    assert weft("predict", run, "--seed", 4, stdin=asked).lines != answer.lines
    assert package.load(run).predict("a red circle at the top").shape == (12, 12, 3)


def test_a_run_begins_with_the_palette_of_another(run: Path, tmp_path: Path) -> None:
    asked = (f"data.folder={run.parent / 'toy'}", f"training.start={run}")
    weft("train", run.parent / "toy" / "recipe.yaml", "--run", tmp_path / "next", *asked, code=0)
    for name in ("tiles.npy", "pictures.json", "tokenizer.json"):
        assert (tmp_path / "next" / name).read_bytes() == (run / name).read_bytes()


def test_other_tiles_before_the_first_checkpoint_make_a_new_palette(tmp_path: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    folder = recipe.parent / "run"
    checked = begin_run(folder, read_recipe(recipe, [f"data.folder={recipe.parent}"]))
    checked.task.prepare(folder, lambda *_: None)  # and then it was killed
    assert np.load(folder / "tiles.npy").shape[1] == 3
    assert train(recipe, "data.tile=2").code == 0
    assert np.load(folder / "tiles.npy").shape[1] == 2


def test_evaluate_prints_baselines_and_what_is_right(run: Path, tmp_path: Path) -> None:
    answer = weft("evaluate", run, "--split", "valid", "--json", tmp_path / "all.json", code=0)
    for shown in (
        "nats a tile",
        "baseline: tiles by frequency",
        "baseline: the mean picture",
        "all right",
        "by the nearest template",
    ):
        assert shown in answer.unfolded


def test_what_is_wrong_is_one_sentence(tmp_path: Path, run: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    assert "multiples of 5 pixels" in refused(train(recipe, "data.tile=5"))
    (recipe.parent / "pictures" / "05.png").write_bytes(b"no")
    assert "05.png: damaged, or no picture" in refused(train(recipe))
    for path in list((recipe.parent / "pictures").iterdir()):
        np.save(path.with_suffix(".npy"), np.zeros((3, 5)))
    for name in ("train.tsv", "valid.tsv"):
        text = (recipe.parent / name).read_text()
        (recipe.parent / name).write_text(text.replace(".png", ".npy"))
    assert "got features" in refused(train(recipe))


def test_captions_longer_than_the_model_reads_are_cut_as_in_training(tmp_path: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    layers = "use: transformer, size: 8, num_layers: 1, num_heads: 2, inner: 11"
    short = f"model.encoder={{{layers}, positions: learned, max_length: 2}}", "data.max_length=2"
    answer = train(recipe, *short)  # each caption has more than two words
    assert answer.code == 0, answer.err
    assert "squared error of the palette alone 0.00000" in answer.err
    evaluated = weft("evaluate", recipe.parent / "run", "--split", "valid")
    assert evaluated.code == 0 and "nats a tile" in evaluated.out, evaluated.err
    answer = weft("predict", recipe.parent / "run", stdin=b"a red circle at the top\nred\n")
    assert answer.code == 0 and all(line.startswith("data:image/png;base64,") for line in answer.lines)
    assert "standard input:1: the caption is read up to its first 2 tokens" in answer.err
    cut = weft("predict", recipe.parent / "run", stdin=b"a red\nred\n")
    assert cut.lines == answer.lines and "is read up to" not in cut.err
