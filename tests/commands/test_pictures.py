"""Pictures and clips to captions and classes, and text to pictures, as a user types it."""

import base64
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import weft as package
from tests import toys
from tests.commands.shell import refused, trained_in, untouched, weft
from tests.shared import run_fixture, shared_run
from weft.config import read_recipe
from weft.errors import DataError, DataWarning
from weft.run.training import begin_run
from weft.tasks.images.data import ClassData

TASK = "caption"
drawer = run_fixture("draw")


def test_coco_results_are_one_array(run: Path) -> None:
    answer = weft("predict", run, run.parent / "toy" / "pictures", "--coco")
    found = json.loads(answer.out)
    assert [one["image_id"] for one in found] == [f"{n:02}" for n in range(16)]
    captions = weft("predict", run, run.parent / "toy" / "pictures").lines
    assert [one["caption"] for one in found] == captions
    assert weft("predict", run, run.parent / "toy" / "valid.tsv").lines == captions[13:]


def test_records_with_splits_and_a_zip_are_trained_checked_and_answered(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    folder, whole = recipe.parent, []
    for name in ("train", "valid"):
        for line in (folder / f"{name}.tsv").read_text().splitlines():
            image, caption = line.split("\t")
            whole.append(json.dumps({"image": image, "split": name, "captions": {"en": caption, "hr": "x"}}))
    (folder / "captions.jsonl").write_text("\n".join(whole) + "\n")
    shutil.make_archive(str(folder / "images"), "zip", folder, "pictures")  # below a folder, compressed
    shutil.rmtree(folder / "pictures")
    recipe.write_text(
        toys.CAPTION.replace("train.tsv", "captions.jsonl")
        .replace("valid.tsv", "captions.jsonl")
        .replace("images: pictures, ", "")
    )
    answer = trained_in(recipe)
    assert answer.code == 0, answer.err
    assert "13 of 13 pictures" in answer.err
    assert "captions.jsonl valid, 3 pictures" in weft("evaluate", folder / "run", "--split", "valid").out
    answers = weft("predict", folder / "run", folder / "images.zip").lines
    assert len(answers) == 16
    assert weft("predict", folder / "run", folder / "captions.jsonl").lines == answers
    one = weft("predict", folder / "run", stdin=f"{folder}/images.zip/pictures/03.png\n".encode())
    assert one.lines == [answers[3]]
    checked = weft("data", "check", folder / "captions.jsonl", "--task", "caption")
    assert checked.code == 0 and "ready to train" in checked.out


def test_a_corrupt_picture_a_missing_one_and_another_size_are_one_sentence_each(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    broken = recipe.parent / "pictures" / "05.png"
    kept = broken.read_bytes()
    broken.write_bytes(kept[:50])
    assert "05.png: damaged, or no picture" in refused(trained_in(recipe))
    broken.unlink()
    assert "train.tsv:6: no such picture" in untouched(tmp_path / "toy", lambda: trained_in(recipe))
    Image.fromarray(np.zeros((9, 12, 3), np.uint8)).save(broken)
    assert "9 x 12 x 3, but" in refused(trained_in(recipe))


def test_a_damaged_picture_of_predict_is_named(run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no")
    assert "x.png: damaged, or no picture" in refused(weft("predict", run, tmp_path / "x.png"))
    Image.fromarray(np.zeros((9, 12, 3), np.uint8)).save(tmp_path / "x.png")
    assert "expected 12 x 12 x 3" in refused(weft("predict", run, tmp_path / "x.png"))
    (tmp_path / "empty").mkdir()
    assert "expected a folder with pictures" in refused(weft("predict", run, tmp_path / "empty"))


def test_data_check_names_everything_at_once(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    pictures = recipe.parent / "pictures"
    for path in pictures.iterdir():
        path.rename(recipe.parent / path.name)
    whole = weft("data", "check", recipe.parent / "train.tsv", "--task", "caption")
    assert whole.code == 0 and "ready to train" in whole.out
    (recipe.parent / "02.png").write_bytes(b"no")
    (recipe.parent / "04.png").unlink()
    with open(recipe.parent / "train.tsv", "a") as file:
        file.write("01.png\n")
    found = weft("data", "check", recipe.parent / "train.tsv", "--task", "caption")
    assert found.code == 1
    for said in ("02.png: damaged", "train.tsv:5: no such picture", "train.tsv:14: expected 2 columns"):
        assert said in found.out


def test_given_features_are_captioned_too(tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    for path in list((recipe.parent / "pictures").iterdir()):
        np.save(path.with_suffix(".npy"), np.random.default_rng(1).normal(size=(3, 5)))
    for name in ("train.tsv", "valid.tsv"):
        text = (recipe.parent / name).read_text()
        (recipe.parent / name).write_text(text.replace(".png", ".npy"))
    answer = trained_in(recipe, "model.front={use: regions, size: 7}")
    assert answer.code == 0, answer.err
    assert len(weft("predict", recipe.parent / "run", recipe.parent / "valid.tsv").lines) == 3


def test_each_line_is_answered_with_a_picture_and_a_sheet_shows_all(drawer: Path, tmp_path: Path) -> None:
    asked = b"a red circle at the top\nred\nsomething never seen\n"
    answer = weft("predict", drawer, "--pictures", tmp_path / "plots", stdin=asked, code=0)
    assert len(answer.lines) == 3
    for line in answer.lines:
        with Image.open(io.BytesIO(base64.b64decode(line.removeprefix("data:image/png;base64,")))) as picture:
            assert picture.size == (12, 12)
    names = ["1.png", "2.png", "3.png", "sheet.png", "sheet.svg"]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == names
    assert weft("predict", drawer, stdin=asked).lines == answer.lines  # the seed is the recipe's
    assert weft("predict", drawer, "--seed", 4, stdin=asked).lines != answer.lines
    assert package.load(drawer).predict("a red circle at the top").shape == (12, 12, 3)


def test_a_run_begins_with_the_palette_of_another(drawer: Path, tmp_path: Path) -> None:
    asked = (f"data.folder={drawer.parent / 'toy'}", f"training.start={drawer}")
    weft("train", drawer.parent / "toy" / "recipe.yaml", "--run", tmp_path / "next", *asked, code=0)
    for name in ("tiles.npy", "pictures.json", "tokenizer.json"):
        assert (tmp_path / "next" / name).read_bytes() == (drawer / name).read_bytes()


def test_other_tiles_before_the_first_checkpoint_make_a_new_palette(tmp_path: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    folder = recipe.parent / "run"
    checked = begin_run(folder, read_recipe(recipe, [f"data.folder={recipe.parent}"]))
    checked.task.prepare(folder, lambda *_: None)  # and then it was killed
    assert np.load(folder / "tiles.npy").shape[1] == 3
    assert trained_in(recipe, "data.tile=2").code == 0
    assert np.load(folder / "tiles.npy").shape[1] == 2


def test_what_is_wrong_is_one_sentence(tmp_path: Path, drawer: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    (recipe.parent / "pictures" / "05.png").write_bytes(b"no")
    assert "05.png: damaged, or no picture" in refused(trained_in(recipe))
    for path in list((recipe.parent / "pictures").iterdir()):
        np.save(path.with_suffix(".npy"), np.zeros((3, 5)))
    for name in ("train.tsv", "valid.tsv"):
        text = (recipe.parent / name).read_text()
        (recipe.parent / name).write_text(text.replace(".png", ".npy"))
    assert "got features" in refused(trained_in(recipe))


def test_captions_longer_than_the_model_reads_are_cut_as_in_training(tmp_path: Path) -> None:
    recipe = toys.drawings(tmp_path / "toy")
    layers = "use: transformer, size: 8, num_layers: 1, num_heads: 2, inner: 11"
    short = f"model.encoder={{{layers}, positions: learned, max_length: 2}}", "data.max_length=2"
    answer = trained_in(recipe, *short)  # each caption has more than two words
    assert answer.code == 0, answer.err
    assert "squared error of the palette alone 0.00000" in answer.err
    evaluated = weft("evaluate", recipe.parent / "run", "--split", "valid")
    assert evaluated.code == 0 and "nats a tile" in evaluated.out, evaluated.err
    answer = weft("predict", recipe.parent / "run", stdin=b"a red circle at the top\nred\n")
    assert answer.code == 0 and all(line.startswith("data:image/png;base64,") for line in answer.lines)
    assert "standard input:1: the caption is read up to its first 2 tokens" in answer.err
    cut = weft("predict", recipe.parent / "run", stdin=b"a red\nred\n")
    assert cut.lines == answer.lines and "is read up to" not in cut.err


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
    assert f"train: {train}" in written
    assert f"test: {test}" in written
    assert "2 classes, 24 pictures" in answer.out
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
