"""Captioning from pictures to sentences, as a user types it."""

import json
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from tests import toys
from tests.commands.shell import refused, trained_in, untouched, weft

TASK = "caption"


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
