"""Images, clips and captions from files, and the errors of invalid ones."""

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.data import files, images, shapes
from weft.errors import DataError


def save(path: Path, shape: tuple[int, ...] = (5, 7, 3), seed: int = 1) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def test_a_picture_is_its_pixels_and_what_is_transparent_is_white(tmp_path):
    pixels = save(tmp_path / "a.png")
    np.testing.assert_array_equal(images.read_picture(tmp_path / "a.png"), pixels)
    see_through = save(tmp_path / "b.png", (5, 7, 4))
    see_through[..., 3] = 0
    Image.fromarray(see_through).save(tmp_path / "b.png")
    assert (images.read_picture(tmp_path / "b.png") == 255).all()
    assert images.read_picture(tmp_path / "a.png", 11).shape == (11, 11, 3)


def test_a_corrupt_picture_is_named(tmp_path):
    path = tmp_path / "broken.png"
    save(path, (31, 37, 3))
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(DataError, match=r"broken\.png: damaged, or no picture"):
        images.read_picture(path)
    with pytest.raises(DataError, match=r"gone\.png: no such file"):
        images.read_picture(tmp_path / "gone.png")


def test_clips_are_arrays_or_gifs(tmp_path):
    clip = np.random.default_rng(1).integers(0, 256, (4, 5, 7, 3), np.uint8)
    np.save(tmp_path / "a.npy", clip)
    np.testing.assert_array_equal(images.read_clip(tmp_path / "a.npy"), clip)
    np.save(tmp_path / "grey.npy", clip[..., 0] / 255)
    np.testing.assert_array_equal(images.read_clip(tmp_path / "grey.npy")[..., 2], clip[..., 0])
    np.testing.assert_array_equal(images.read_clip(tmp_path / "a.npy", frames=2), clip[[0, 3]])
    plain = [Image.new("RGB", (7, 5), colour) for colour in ("red", "blue", "white")]
    plain[0].save(tmp_path / "a.gif", save_all=True, append_images=plain[1:])
    found = images.read_clip(tmp_path / "a.gif")
    assert found.shape == (3, 5, 7, 3) and found[0, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((4, 5)), "frames x height x width"),
        (np.full((2, 5, 7), 3.0), "values from 0 to 1, got 3 to 3"),
        (np.full((2, 5, 7), 999), "0 to 255"),
        (np.full((2, 5, 7), np.nan), "finite"),
        (np.array(["a"]), "array of numbers"),
    ],
)
def test_a_clip_that_is_none_is_named(tmp_path, array, said):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=rf"a\.npy: .*{said}"):
        images.read_clip(tmp_path / "a.npy")
    with pytest.raises(DataError, match="at least 9 frames"):
        np.save(tmp_path / "b.npy", np.zeros((2, 5, 7)))
        images.read_clip(tmp_path / "b.npy", frames=9)


def test_records_may_say_their_split_and_language(tmp_path):
    save(tmp_path / "a.png")
    save(tmp_path / "b.png")
    records = [
        {"image": "a.png", "split": "train", "captions": {"en": "one", "hr": "jedan"}},
        {"image": "b.png", "split": "val", "captions": {"en": "two", "hr": "dva"}},
        {"image": "not-here.png", "split": "test", "captions": {"en": "three", "hr": "tri"}},
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    found = images.read_captions(tmp_path / "c.jsonl", split="valid", language="hr")
    assert [one.captions for one in found] == [["dva"]]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.tsv", "a.png\tone\ngone.png\ttwo\n", r"c\.tsv:2: .*gone\.png"),
        ("c.tsv", "a.png\n", r"c\.tsv:1: .*got 1"),
        ("c.tsv", "a.png\t \n", r"c\.tsv:1: the caption is empty"),
        ("c.jsonl", "{\n", r"c\.jsonl:1: expected a record"),
        ("c.jsonl", '{"image": 3}\n', r"c\.jsonl:1: expected .* a header with image and caption"),
        ("c.jsonl", '{"image": "a.png"}\n', r"c\.jsonl:1: expected .* a header with image and caption"),
        ("c.json", "[]\n", r"c\.json: expected records"),
        ("c.json", '{"images": [], "annotations": []}\n', r"c\.json: .*captions"),
        (
            "c.json",
            '{"images": [], "annotations": [{"image_id": 3, "caption": "x"}]}\n',
            "annotation 1 is for image 3",
        ),
    ],
)
def test_wrong_captions_are_named_by_file_and_line(tmp_path, name, text, said):
    save(tmp_path / "a.png")
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        images.read_captions(tmp_path / name)


def test_generated_pictures_are_those_of_their_numbers_and_a_rule_recognises_them():
    pixels, seen = shapes.shapes([3], range(40), 24)
    again, _ = shapes.shapes([3], [17], 24)
    np.testing.assert_array_equal(pixels[17], again[0])
    assert [shapes.recognise(picture) for picture in pixels] == seen
    assert all(shapes.read_caption(one.caption) == one for one in seen)
    assert shapes.recognise(np.full((24, 24, 3), 255, np.uint8)) is None
    assert shapes.read_caption("a red dog at the top") is None


def test_the_class_is_where_the_shape_of_the_still_ones_colour_goes():
    clips, labels = shapes.moving([5], range(200), 24, 4)
    assert all(30 < count < 75 for count in Counter(labels).values()) and len(set(labels)) == 4
    again, _ = shapes.moving([5], [11], 24, 4)
    np.testing.assert_array_equal(clips[11], again[0])
    for clip, label in zip(clips, labels, strict=True):
        found = []
        for row, column in ((0, 0), (0, 12), (12, 0), (12, 12)):
            corner = clip[:, row : row + 12, column : column + 12]
            ink = (corner != 255).any(-1)
            if not ink.any():
                continue
            centres = [np.argwhere(frame).mean(0) for frame in ink]
            colour = tuple(corner[ink][0])
            found.append((colour, centres[-1] - centres[0]))
        assert len(found) == 3
        (still,) = (colour for colour, way in found if np.abs(way).max() < 1e-9)
        (way,) = (way for colour, way in found if colour == still and np.abs(way).max() > 1)
        wanted = shapes.DIRECTIONS[shapes.MOTIONS.index(label)]
        assert way @ np.array(wanted) > 2


def zipped(folder: Path, names: list[str], top: str = "") -> Path:
    """captions.jsonl and images.zip of images that are not in the folder; returns the first image."""
    pixels = [save(folder / "made" / name, seed=number) for number, name in enumerate(names)]
    with zipfile.ZipFile(folder / "images.zip", "w") as file:
        for name in names:
            file.write(folder / "made" / name, f"{top}{name}")
    shutil.rmtree(folder / "made")
    records = [
        {"image": name, "split": "val" if number else "train", "captions": {"en": f"picture {number}"}}
        for number, name in enumerate(names)
    ]
    (folder / "captions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    np.save(folder / "pixels.npy", np.stack(pixels))
    return folder / "captions.jsonl"


@pytest.mark.parametrize("top", ["", "all/"])
@pytest.mark.parametrize("given", [None, "images.zip", "images.zip/all"])
def test_pictures_are_read_from_within_a_zip(tmp_path, top, given):
    path = zipped(tmp_path, ["a.png", "b.png", "c.png"], top)
    images_ = None if given is None else tmp_path / given
    if given == "images.zip/all" and not top:
        with pytest.raises(DataError, match=r"captions\.jsonl:1: .*images\.zip/all/a\.png"):
            images.read_captions(path, images_, split="train")
        return
    found = images.read_captions(path, images_, split="valid")
    assert [one.captions for one in found] == [["picture 1"], ["picture 2"]]
    pixels = np.load(tmp_path / "pixels.npy")
    for one, want in zip(found, pixels[1:], strict=True):
        np.testing.assert_array_equal(images.read_picture(one.path), want)
    (first,) = images.read_captions(path, images_, split="train")
    assert first.path == tmp_path / "images.zip" / f"{top}a.png" and first.number == "a"
    assert [each.name for each in files.members(tmp_path / "images.zip")] == ["a.png", "b.png", "c.png"]


def test_a_picture_on_the_disk_goes_before_the_one_in_the_zip(tmp_path):
    path = zipped(tmp_path, ["a.png", "b.png"])
    pixels = save(tmp_path / "a.png", seed=9)
    (found,) = images.read_captions(path, split="train")
    assert found.path == tmp_path / "a.png"
    np.testing.assert_array_equal(images.read_picture(found.path), pixels)


def test_what_is_wrong_with_a_zip_is_one_sentence(tmp_path, monkeypatch):
    path = zipped(tmp_path, ["a.png", "b.png"])
    kept = (tmp_path / "images.zip").read_bytes()
    with pytest.raises(DataError, match=r"images\.zip/gone\.png: no such file in the archive"):
        images.read_picture(tmp_path / "images.zip" / "gone.png")
    with pytest.raises(DataError, match=r"x\.npy: arrays are not read from within a \.zip"):
        images.read_array(tmp_path / "images.zip" / "x.npy")
    with monkeypatch.context() as patch:
        patch.setattr(files, "MEMBER_BYTES", 50)
        with pytest.raises(DataError, match=r"a\.png: larger than 0 MiB; unpack the archive"):
            images.read_picture(tmp_path / "images.zip" / "a.png")
    (tmp_path / "images.zip").write_bytes(kept.replace(b"IDAT", b"IDXT"))
    with pytest.raises(DataError, match=r"images\.zip/a\.png: damaged"):
        images.read_picture(tmp_path / "images.zip" / "a.png")
    (tmp_path / "images.zip").write_bytes(kept[:40])
    with pytest.raises(DataError, match=r"images\.zip: .*damaged"):
        images.read_captions(path, split="train")


@pytest.mark.parametrize(("frames", "chosen"), [(5, [0, 5, 10, 14, 19]), (None, [0, 4, 7, 10, 13, 16, 19])])
def test_a_video_is_opened_once_and_its_pictures_are_evenly_spaced(tmp_path, monkeypatch, frames, chosen):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "a.mp4"), "w") as file:
        stream = file.add_stream("mpeg4", rate=25, width=32, height=32, pix_fmt="yuv420p")
        for number in range(20):
            grey = np.full((32, 32, 3), 12 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(grey)))
        file.mux(stream.encode())
    opened, open_video = [], av.open
    monkeypatch.setattr(av, "open", lambda name: opened.append(name) or open_video(name))
    found = images.read_clip(tmp_path / "a.mp4", frames=frames)
    assert len(opened) == 1
    np.testing.assert_allclose(found.mean((1, 2, 3)) / 12, chosen, atol=0.5)
