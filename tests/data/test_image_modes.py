"""Pictures as phones, scanners, microscopes and other programs write them."""

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.data import images
from weft.errors import DataError, DataWarning

MARKED = np.zeros((4, 6, 3), np.uint8)
MARKED[0, 0] = MARKED[0, 1] = 200  # the top left corner


def stored(upright: np.ndarray, orientation: int) -> np.ndarray:
    """What a camera stores for an upright picture, from the definition of the EXIF tag 274.

    The tag says where the stored row 0 and column 0 are in the upright picture, such as 6: right, top.
    """
    return {
        1: lambda x: x,
        2: lambda x: x[:, ::-1],  # top, right
        3: lambda x: x[::-1, ::-1],  # bottom, right
        4: lambda x: x[::-1],  # bottom, left
        5: lambda x: x.swapaxes(0, 1),  # left, top
        6: lambda x: x[:, ::-1].swapaxes(0, 1),  # right, top
        7: lambda x: x[::-1, ::-1].swapaxes(0, 1),  # right, bottom
        8: lambda x: x[::-1].swapaxes(0, 1),  # left, bottom
    }[orientation](upright)


@pytest.mark.parametrize("ending", ["png", "webp", "tif", "jpg"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_upright_however_the_camera_was_held(
    tmp_path: Path, orientation: int, ending: str
) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    upright = MARKED.repeat(16, 0).repeat(16, 1)  # blocks that JPEG keeps
    path = tmp_path / f"a.{ending}"
    more = {"lossless": True} if ending == "webp" else {"subsampling": 0} if ending == "jpg" else {}
    Image.fromarray(np.ascontiguousarray(stored(upright, orientation))).save(path, exif=exif, **more)
    np.testing.assert_allclose(images.read_picture(path), upright, atol=8 if ending == "jpg" else 0)


def test_damaged_exif_does_not_cost_the_picture(tmp_path: Path) -> None:
    Image.fromarray(MARKED).save(tmp_path / "a.png", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    np.testing.assert_array_equal(images.read_picture(tmp_path / "a.png"), MARKED)


@pytest.mark.parametrize(
    ("array", "ending"),
    [
        (np.full((5, 7), 127 * 257, np.uint16), "png"),
        (np.full((5, 7), 127 * 257, np.uint16), "tif"),
        (np.full((5, 7), 127 * 257, ">u2"), "tif"),
        (np.full((5, 7), 127 * 257, np.int32), "tif"),
        (np.full((5, 7), 127 / 255, np.float32), "tif"),
        (np.full((5, 7), 127, np.float32), "tif"),
        (np.full((5, 7), 127, np.uint8), "png"),
        (np.full((5, 7), 127, np.uint8), "pgm"),
    ],
    ids=["16-bit", "16-bit TIFF", "big-endian", "32-bit", "0 to 1", "0 to 255", "8-bit", "PGM"],
)
def test_a_medium_grey_is_a_medium_grey(tmp_path: Path, array: np.ndarray, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    Image.fromarray(array).save(path)
    found = images.read_picture(path)
    assert found.shape == (5, 7, 3) and found.dtype == np.uint8 and (found == 127).all()


def test_a_pgm_of_16_bits(tmp_path: Path) -> None:
    (tmp_path / "a.pgm").write_bytes(b"P5 2 1 65535 " + struct.pack(">2H", 127 * 257, 65535))
    assert images.read_picture(tmp_path / "a.pgm")[0, :, 0].tolist() == [127, 255]


def test_the_transparent_grey_of_16_bits_is_white(tmp_path: Path) -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head, rows = struct.pack(">IIBBBBB", 2, 1, 16, 0, 0, 0, 0), b"\0" + struct.pack(">2H", 257, 32639)
    parts = [
        (b"IHDR", head),
        (b"tRNS", struct.pack(">H", 257)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in parts))
    assert images.read_picture(tmp_path / "a.png")[0, :, 0].tolist() == [255, 127]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([[-3, 70_000]], np.int32), "grey values from 0 to 65,535, got -3 to 70,000"),
        (np.array([[0, 300]], np.float32), "floats from 0 to 1 or to 255, got 0 to 300"),
        (np.array([[0, np.nan]], np.float32), "floats from 0 to 1 or to 255, got nan to nan"),
    ],
)
def test_values_that_are_no_greys_are_refused(tmp_path: Path, array: np.ndarray, said: str) -> None:
    Image.fromarray(array).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=rf"a\.tif: expected {said}; scale them"):
        images.read_picture(tmp_path / "a.tif")


def test_palettes_bits_and_inks(tmp_path: Path) -> None:
    red = Image.new("RGB", (7, 5), (255, 0, 0))
    palette = red.convert("P", palette=Image.Palette.ADAPTIVE)
    palette.save(tmp_path / "palette.png")
    seen = red.copy()
    seen.paste((0, 0, 255), (0, 0, 1, 1))
    two = seen.convert("P", palette=Image.Palette.ADAPTIVE, colors=2)
    two.save(tmp_path / "clear.png", transparency=two.getpixel((0, 0)))
    alphas = bytes(0 if n == two.getpixel((0, 0)) else 255 for n in range(2))
    two.save(tmp_path / "alphas.png", transparency=alphas)  # Pillow warns about this one when it converts
    Image.new("CMYK", (7, 5), (0, 255, 255, 0)).save(tmp_path / "print.jpg", quality=100)
    Image.new("1", (7, 5), 1).save(tmp_path / "fax.png")
    grey = Image.new("LA", (7, 5), (100, 0))
    grey.save(tmp_path / "grey.png")
    assert (images.read_picture(tmp_path / "palette.png") == [255, 0, 0]).all()
    for name in ("clear.png", "alphas.png"):
        found = images.read_picture(tmp_path / name)
        assert found[0, 0].tolist() == [255] * 3 and found[1, 1].tolist() == [255, 0, 0], name
    np.testing.assert_allclose(images.read_picture(tmp_path / "print.jpg"), np.array(red), atol=3)
    assert (images.read_picture(tmp_path / "fax.png") == 255).all()
    assert (images.read_picture(tmp_path / "grey.png") == 255).all()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA"])
@pytest.mark.parametrize("size", [None, 3, 11])
def test_ordinary_pictures_are_what_they_were(tmp_path: Path, mode: str, size: int | None) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (5, 7, len(mode)), np.uint8)
    Image.fromarray(noise[..., 0] if mode == "L" else noise).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as file:
        whole = file.convert("RGBA")
    whole = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
    want = whole if size is None else whole.resize((size, size), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(images.read_picture(tmp_path / "a.png", size), np.array(want))


def test_a_picture_that_moves_is_its_first_frame_and_it_is_said(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (7, 5), colour) for colour in ("red", "blue")]
    for ending in ("gif", "webp", "png", "tif"):
        path = tmp_path / f"a.{ending}"
        more = {"lossless": True} if ending == "webp" else {}
        frames[0].save(path, save_all=True, append_images=frames[1:], **more)
        with pytest.warns(DataWarning, match=rf"a\.{ending}: has 2 frames or pages; .* only the first"):
            assert (images.read_picture(path) == [255, 0, 0]).all()


def test_a_photo_with_a_second_view_is_only_a_photo(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.jpg", "MPO", save_all=True, append_images=frames[1:])
    np.testing.assert_allclose(images.read_picture(tmp_path / "a.jpg")[3, 3], [255, 0, 0], atol=3)


def test_warnings_of_pillow_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.fromarray(MARKED).save(tmp_path / "a.png")
    convert = Image.Image.convert

    def warned(self: Image.Image, *given: object) -> Image.Image:
        warnings.warn("Metadata Warning, tag 256 had too many entries: 2, expected 1", stacklevel=2)
        return convert(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Image.Image, "convert", warned)
    np.testing.assert_array_equal(images.read_picture(tmp_path / "a.png"), MARKED)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.png", b"", "the file is empty"),
        ("a.png", b"no picture but a text\n", "damaged, or no picture; save it again as PNG"),
        (
            "a b.heic",
            b"\0\0\0\x18ftypheic\0\0",
            r"a HEIC picture, .*: magick '\S*a b.heic' '\S*a b.png'",
        ),
        ("a.jpg", b"\0\0\0\x18ftypmif1\0\0", r"a HEIC picture, .*: magick \S*a.jpg \S*a.jpg.png"),
        ("a.jpg", b"%PDF-1.7\n", "expected a picture, got a PDF; name another file"),
        ("a.jpg", b"RIFF....WAVEfmt ", "expected a picture, got a wav file"),
        ("a.png", b"\x89PNG\r\n\x1a\n then nothing", "damaged, or no picture"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(13), "damaged, or no picture"),
    ],
)
def test_a_file_that_is_no_picture_says_what_to_do(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}: .*{said}"):
        images.read_picture(tmp_path / name)


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(MARKED).save(tmp_path / "a.png")
    for most in (20, 10):  # Pillow warns, or refuses
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
        with pytest.raises(DataError, match=rf"a\.png: more than {most} pixels; scale it down"):
            images.read_picture(tmp_path / "a.png")


def tiff(path: Path, rows: np.ndarray, *, white_is_0: bool = False, sample_format: int = 1) -> Path:
    """A greyscale TIFF as scanners and microscopes write it, without Pillow."""
    height, width = rows.shape
    tags = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 8 * rows.itemsize),
        (259, 3, 1),
        (262, 3, 1 - white_is_0),
    ]
    begin = 8 + 2 + 12 * 9 + 4
    tags += [(273, 4, begin), (278, 4, height), (279, 4, rows.nbytes), (339, 3, sample_format)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, 9) + entries + bytes(4) + rows.tobytes())
    return path


@pytest.mark.parametrize("rows", [np.array([[0, 65535, 257]], "<u2"), np.array([[0, 255, 1]], "u1")])
def test_a_tiff_that_has_0_for_white(tmp_path: Path, rows: np.ndarray) -> None:
    assert images.read_picture(tiff(tmp_path / "x.tif", rows))[0, :, 0].tolist() == [0, 255, 1]
    found = images.read_picture(tiff(tmp_path / "y.tif", rows, white_is_0=True))
    assert found[0, :, 0].tolist() == [255, 0, 254]


def test_a_tiff_of_8_bits_with_a_sign_is_refused(tmp_path: Path) -> None:
    path = tiff(tmp_path / "x.tif", np.array([[-128, 127, 0]], "i1"), sample_format=2)
    with pytest.raises(DataError, match=r"x\.tif: grey values of 8 bits with a sign"):
        images.read_picture(path)
