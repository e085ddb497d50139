"""Classes of pictures and clips, as a user types it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import weft as package
from tests import toys
from tests.commands.shell import refused, trained_in, untouched, weft
from tests.shared import shared_run
from weft.errors import DataError, DataWarning
from weft.tasks.images.data import ClassData

TASK = "images"


@pytest.mark.parametrize(("task", "folder"), [("images", "train/circle"), ("caption", "pictures")])
def test_a_folder_a_file_and_names_are_answered_alike(task: str, folder: str) -> None:
    run = shared_run(task)
    paths = sorted((run.parent / "toy" / folder).iterdir())
    whole = weft("predict", run, paths[0].parent, code=0).lines
    assert len(whole) == len(paths) and all(whole)
    names = "".join(f"{path}\n" for path in paths)
    assert weft("predict", run, stdin=names.encode()).lines == whole
    assert weft("predict", run, paths[3]).lines == [whole[3]] == [package.load(run).predict(paths[3])]


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
    assert f"{first.name}: damaged, or no picture" in refused(trained_in(recipe))
    found = weft("data", "check", recipe.parent / "train", "--task", "images")
    assert found.code == 1 and f"{first.name}: damaged" in found.out
    Image.fromarray(np.zeros((9, 12, 3), np.uint8)).save(first)
    assert "9 x 12 x 3" in refused(trained_in(recipe))
    assert "set data.size" in weft("data", "check", recipe.parent / "train", "--task", "images").out
    first.write_bytes(kept)
    (recipe.parent / "train" / "empty").mkdir()
    assert "empty: expected pictures or clips" in untouched(recipe.parent, lambda: trained_in(recipe))
    assert "no such folder" in refused(trained_in(recipe, "data.train=gone"))


def test_init_lets_one_place_see_the_whole_picture(tmp_path: Path) -> None:
    for side, stages in ((12, 3), (32, 4), (64, 5)):
        for name in ("a", "b"):
            folder = tmp_path / str(side) / name
            folder.mkdir(parents=True)
            Image.fromarray(np.zeros((side, side, 3), np.uint8)).save(folder / "1.png")
        text = weft("init", "images", "--train", tmp_path / str(side), "-o", tmp_path / f"{side}.yaml").out
        assert f"sizes: {[32, 64, 128, 128, 128][:stages]}, non_local" in text


def drawn(path: Path, *levels: int, how: str = "RGB", **options: object) -> None:
    """A picture of 8 x 8 pixels, or a clip of several."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = (
        Image.fromarray(np.random.default_rng(level).integers(0, 256, (8, 8, 3), np.uint8))
        for level in levels
    )
    first.convert(how).save(
        path, **({"save_all": True, "append_images": others} if others else {}), **options
    )


def test_pictures_in_training_and_test_and_unknown_classes_are_named(tmp_path: Path) -> None:
    for number in range(12):
        drawn(tmp_path / "photos/train/cat" / f"{number}.png", number)
        drawn(tmp_path / "photos/train/dog/old" / f"{number}.tga", number + 50)
        drawn(tmp_path / "photos/test/Cat" / f"copy{number}.bmp", number)
        drawn(tmp_path / "photos/test/dog" / f"{number}.png", number + 90)
    train, test = tmp_path / "photos/train", tmp_path / "photos/test"
    found = weft("data", "check", tmp_path / "photos", code=0).out
    assert f"{train}: 24 pictures\n{test}: 24 pictures\n" in found
    assert "warning: pictures that are also in an earlier folder or list: 12" in found
    assert f"{test}/Cat/copy0.bmp: the same picture as {train}/cat/0.png" in found
    assert (
        f"{test}: 12 pictures of 'Cat', a class that {train} lacks, so their answers are wrong; is it 'cat'?"
        in found
    )
    assert found.count("the same picture") == 3 and "and 9 more" in found
    assert weft("data", "check", train, test, "--all", code=0).out.count("the same picture") == 12
    answer = weft("init", "images", tmp_path / "photos", "-o", tmp_path / "x.yaml", code=0)
    written = (tmp_path / "x.yaml").read_text()
    assert (
        f"train: {train}" in written and f"test: {test}" in written and "2 classes, 24 pictures" in answer.out
    )
    assert f"data check {train} {test} --task images" in answer.out
    assert "held out for validation: 2 of 12 of the class 'cat', 1 of 12 of the class 'dog'" in answer.out
    drawn(tmp_path / "photos/valid/cat/1.png", 200)
    for number in range(3):
        drawn(tmp_path / "photos/valid/dog" / f"{number}.png", number + 300)
    thin = "1 of the class 'cat', so scores there say little about it; add pictures"
    again = weft("init", "images", tmp_path / "photos", "-o", tmp_path / "y.yaml", code=0)
    assert f"{thin} to {tmp_path / 'photos/valid'}" in again.out
    assert f"{tmp_path / 'photos/valid'}: {thin}" in weft("data", "check", tmp_path / "photos", code=0).out


def test_a_gif_among_pictures_is_a_picture_and_short_clips_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    for number in range(6):
        drawn(tmp_path / "mixed/a" / f"{number}.jpg", number)
        drawn(tmp_path / "mixed/b" / f"{number}.gif", number, how="P")
        drawn(tmp_path / "clips/a" / f"{number}.gif", *range(3 + number, 6 + number))
        drawn(tmp_path / "clips/b" / f"{number}.gif", *range(20 + number, 23 + number))
    said = weft("data", "check", tmp_path / "mixed", code=0).out
    assert said.count("warning: ") == 1 and "validation: 1 of 6 of the class 'a', 1 of 6 of the class" in said
    assert ClassData(train="mixed", folder=tmp_path).load("train").pixels.shape[1:] == (8, 8, 3)
    drawn(tmp_path / "clips/b/short.gif", 3, 5)
    (tmp_path / "clips/b/c d.mp4").write_bytes(b"video")
    found = weft("data", "check", tmp_path / "clips", code=1).out
    assert "short.gif: 2 x 8 x 8 x 3, but" in found and "set data.frames" in found
    assert f"or convert it: ffmpeg -i '{tmp_path}/clips/b/c d.mp4' -r 8 '{tmp_path}/clips/b/c d.gif'" in found
    with pytest.raises(DataError, match=r"c d\.mp4: needs PyAV \(pip install 'weft-seq\[video\]'\)"):
        ClassData(train="clips", folder=tmp_path).load("train")
    (tmp_path / "mixed/a/x.mp4").write_bytes(b"video")
    with pytest.warns(DataWarning, match=r"left out 1 file that"):
        assert len(ClassData(train="mixed", folder=tmp_path).load("train").labels) < 12


def test_a_list_of_pictures_with_classes_trains_and_is_evaluated(tmp_path: Path) -> None:
    rows = []
    for number in range(20):
        drawn(tmp_path / "train" / f"{number}.png", number)
        rows.append(f"{number},{'dog' if number % 2 else 'cat'}\n")
    (tmp_path / "train.csv").write_text("id,breed\n" + "".join(rows))
    checked = weft("data", "check", tmp_path / "train.csv", code=0).out
    assert "columns 'id' and 'breed' are read as image and label" in checked and "20 pictures" in checked
    weft("init", "images", tmp_path / "train.csv", "-o", tmp_path / "x.yaml", code=0)
    data = ClassData(train=str(tmp_path / "train.csv"), hold_out=10)
    assert (len(data.load("train").labels), len(data.load("valid").labels)) == (18, 2)
    (tmp_path / "several.csv").write_text("image,cat,dog\n0.png,1,1\n")
    answer = weft("data", "check", tmp_path / "several.csv", "--task", "images", code=1)
    assert "several.csv:2: expected a column with the label, or one 1 and 0 in all others" in answer.out
