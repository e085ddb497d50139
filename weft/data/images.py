"""Read images and video clips from files, with or without classes or captions.

Pillow reads them. Every image becomes upright, [height, width, 3] uint8, on white where it is transparent.
With classes, a folder has one subfolder per class, or a list names them. Captions are in a table with an
image name and a caption per row, a .jsonl with a record per image, or a .json of COCO, Karpathy or BLIP.
Read next: listed.py, which reads lists; pixels.py; shapes.py, generated images.
"""

import base64
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from weft.data.files import archive_folders, member_of, read_member, unreadable
from weft.data.guess import LABELS
from weft.data.listed import (
    SPLITS,
    ListedText,
    ListForm,
    column_of,
    files_below,
    first_texts,
    folders_for,
    list_of,
    listed_pictures,
)
from weft.data.magic import START, misread
from weft.data.pixels import BROKEN, BROKEN_ARRAY, clip_of, frames_of, pixels
from weft.data.report import Finding
from weft.data.tables import header_of, is_table
from weft.data.video import VIDEOS, read_video
from weft.errors import DataError, DataWarning
from weft.store.digests import note
from weft.wording import plural

UNREAD = (".heic", ".heif")  # pictures that Pillow does not read: the error says what to type

PICTURES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".webp", ".tif", ".tiff", ".avif"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".jp2", ".j2k", ".dib", ".apng"),
    *UNREAD,
)
CLIPS = (".gif", ".npy")  # and videos, and folders of pictures

LABELLED = ListForm(
    *("image", "label", (*PICTURES, *CLIPS, *VIDEOS)),
    others=(
        *(*LABELS, "species", "breed", "labels", "class_name", "category_name", "diagnosis"),
        *("class_id", "classid", "choice", "dx"),
    ),
    folders=True,
    classes=True,
)
"""A list of pictures or clips with their classes."""


class LabelledImage(NamedTuple):
    """An image or clip with its class."""

    path: Path
    label: str


def read_picture(path: Path, size: int | None = None) -> np.ndarray:
    """Read an image as [height, width, 3] uint8, upright as its EXIF says, on white if it is transparent.

    Grey values of 16 bits are scaled by the bits that the file names, else by the 8, 10, 12, 14 or 16 bits
    that the largest needs, with a warning. Floats are grey values from 0 to 1 or, if one is above 1, to 255.

    Args:
        path: any format that Pillow reads, also inside a .zip (photos.zip/cat.png).
        size: scale to a square with sides of this many pixels; None keeps the size.

    Raises:
        DataError: the file is missing or not an image.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "red.png"
        ...     Image.new("RGB", (7, 5), "red").save(path)
        ...     read_picture(path).shape, read_picture(path, 3).shape  # [height, width, 3]
        ((5, 7, 3), (3, 3, 3))
    """
    with _opened(path) as file:
        found = pixels(file, size, path, notes := [])
        several = 1
        if file.format != "MPO":  # a photo with a second view or a depth map
            with suppress(*BROKEN):
                several = int(getattr(file, "n_frames", 1))
    if several > 1:
        notes.append(f"has {several} frames or pages; of such files only the first is read")
    for each in notes:
        warnings.warn(f"{path}: {each}", DataWarning, stacklevel=1)
    return found


def measured(path: Path) -> int:
    """Number of pixels of an image, or of all frames of a clip, without decoding it."""
    with _opened(path) as file:
        return file.width * file.height * int(getattr(file, "n_frames", 1))


def read_clip(path: Path, size: int | None = None, frames: int | None = None) -> np.ndarray:
    """Read a clip as [frames, height, width, 3] uint8.

    It is a .gif, a video (by PyAV), a folder of pictures, or a .npy of [T, H, W] or [T, H, W, 3].
    """
    if path.suffix.lower() == ".npy":
        clip = clip_of(read_array(path), path)
        if size is not None:
            clip = np.stack([pixels(Image.fromarray(frame), size, path) for frame in clip])
    elif path.suffix.lower() in VIDEOS:
        clip = read_video(path, size, frames)
    elif path.is_dir():
        every = _frames_in(path)
        clip = stack(every, [read_picture(each, size) for each in every], "give frames of one size")
    else:
        with _opened(path) as file:
            clip = np.stack(list(frames_of(file, size, path)))
    if frames is None:
        return clip
    if len(clip) < frames:
        raise DataError(
            f"expected at least {frames} frames, got {len(clip)}; use longer clips or fewer frames", path=path
        )
    return clip[np.linspace(0, len(clip) - 1, frames).round().astype(int)]


def _frames_in(folder: Path) -> list[Path]:
    """The pictures of a clip that is a folder, in the order of their numbers."""
    found = [each for each in folder.iterdir() if each.suffix.lower() in PICTURES and each.name[0] != "."]
    if not found:
        raise DataError("expected pictures, the frames of a clip, got none", path=folder)
    return sorted(
        found, key=lambda each: [int(one) if one.isdigit() else one for one in re.split(r"(\d+)", each.stem)]
    )


def read_array(path: Path) -> np.ndarray:
    """Read the numbers of a .npy file."""
    note(path)
    try:
        # Memory-map it, so that a header that promises too much fails before memory is allocated.
        mapped = np.load(path, mmap_mode="r")
        found = np.array(mapped) if isinstance(mapped, np.memmap) else None
    except BROKEN_ARRAY as error:
        raise _broken(path, error, "array") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "uif" or not found.size:
        raise DataError("expected an array of numbers; save one with numpy.save", path=path)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise DataError("expected finite values; correct or remove the file", path=path)
    return found


def is_clip(path: Path) -> bool:
    """Whether a file has the extension of a clip, or is a folder of pictures."""
    return path.suffix.lower() in (*CLIPS, *VIDEOS) or path.is_dir()


def stack(paths: Sequence[Path], arrays: Sequence[np.ndarray], remedy: str) -> np.ndarray:
    """Stack arrays of equal shape."""
    for path, array in zip(paths, arrays, strict=True):
        if array.shape != arrays[0].shape:
            ours, theirs = (" x ".join(map(str, one.shape)) for one in (array, arrays[0]))
            raise DataError(f"{ours}, but {paths[0]} has {theirs}; {remedy}", path=path)
    return np.stack(arrays)


def parts_in(path: Path) -> dict[str, Path]:
    """Where training, validation and test are of a folder or a list that holds them; none if it does not."""
    if list_of(path).is_file():
        rows = listed_pictures(path, LABELLED)
        said = {row.split for row in rows if isinstance(row, ListedText)}
        return {part: path for part in ("train", "valid", "test") if part in said and "train" in said}
    inside = _folders(path) if path.is_dir() else []
    found = {SPLITS[one.name.lower()]: one for one in inside if one.name.lower() in SPLITS}
    whole = "train" in found and (len(found) > 1 or len(inside) == 1) and _folders(found["train"])
    return {part: found[part] for part in ("train", "valid", "test") if part in found} if whole else {}


def labelled_images(path: Path, part: str | None = None) -> Iterator[LabelledImage | Finding]:
    """The images or clips of a folder with one subfolder per class, or of a list; and what is wrong.

    Of a list whose rows tell it, those of a part (train, valid or test).
    """
    if list_of(path).is_file():
        for row in listed_pictures(path, LABELLED, split=part):
            if isinstance(row, Finding):
                yield row
            elif row.path is not None:
                yield LabelledImage(row.path, row.text)
        return
    if not path.is_dir():
        yield Finding(
            str(path), 0, "file", "no such folder; give one with a folder for each class, or a list"
        )
        return
    folders = _folders(path)
    if not folders:
        yield Finding(
            str(path),
            0,
            "single",
            "expected a subfolder for each class, got none; make them, or a list with the "
            "columns image and label",
        )
    if _framed(folders):
        what = "folders of numbered pictures are read as clips"
        warnings.warn(
            f"{path}: {what}; put the pictures into the folders of the classes if they are none",
            DataWarning,
            stacklevel=1,
        )
        yield from (LabelledImage(clip, folder.name) for folder in folders for clip in _folders(folder))
        return
    files = {folder: files_below(folder) for folder in folders}
    kinds = {each.suffix.lower() for every in files.values() for each in every}
    endings = [one for one in LABELLED.endings if one not in VIDEOS or kinds.isdisjoint(PICTURES)]
    for folder, every in files.items():
        known = [each for each in every if each.suffix.lower() in endings]
        yield from (LabelledImage(file, folder.name) for file in known)
        for other in every:
            if other not in known:
                what = "a video among pictures" if other.suffix.lower() in VIDEOS else "not a picture or clip"
                yield Finding(str(other), 0, "nothing", f"{what} by its extension; it is left out")
        if not known:
            what = "expected pictures or clips, got none; add some or remove the folder"
            yield Finding(str(folder), 0, "unlabelled", what)


def _framed(folders: Sequence[Path]) -> bool:
    """Whether the folders of classes hold nothing but folders of pictures that are numbered from 0 or 1."""
    every = [each for folder in folders for each in folder.iterdir() if each.name[0] != "."]
    if len(every) <= len(folders) or not all(each.is_dir() for each in every):
        return False
    for clip in every:
        numbers = [
            re.search(r"\d+$", each.stem) for each in clip.iterdir() if each.suffix.lower() in PICTURES
        ]
        found = sorted(int(number[0]) for number in numbers if number)
        if len(found) < 2 or found[0] > 1 or found != [*range(found[0], found[0] + len(numbers))]:
            return False
    return True


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir() and each.name[0] != ".")


def read_folders(path: Path, part: str = "train") -> list[LabelledImage]:
    """The images or clips of a folder with one subfolder per class, sorted by name, or of a list.

    Of one that holds train, valid and test only those of the part, if it has some.
    """
    parts, found, left = parts_in(path), list[LabelledImage](), list[str]()
    for one in labelled_images(parts.get(part, path), part if part in parts else None):
        if isinstance(one, LabelledImage):
            found.append(one)
        elif one.kind == "nothing":
            left.append(one.file)
        else:
            raise one.error()
    if left:
        what = (
            f"left out {plural(len(left), 'file')} that are no pictures by their endings, such as {left[0]}"
        )
        warnings.warn(f"{path}: {what}", DataWarning, stacklevel=1)
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open an image file; any error of Pillow becomes a DataError."""
    note(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most are about metadata
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            content = read_member(path)
            with Image.open(path if content is None else io.BytesIO(content)) as file:
                yield file
    except DataError:  # a ValueError too, so it must not reach the next clause
        raise
    except BROKEN as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: BaseException, what: str = "picture") -> DataError:
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return unreadable(path, error)
    if isinstance(error, NotADirectoryError) and member_of(path):
        return DataError("arrays are not read from within a .zip; unpack it", path=path)
    if isinstance(error, Image.DecompressionBombWarning | Image.DecompressionBombError):
        return DataError(
            f"more than {Image.MAX_IMAGE_PIXELS or 0:,} pixels; scale it down, or remove it", path=path
        )
    if isinstance(error, UnidentifiedImageError) and (other := _other(path)):
        return DataError(other, path=path)
    again = "with numpy.save" if what == "array" else "as PNG or JPEG"
    return DataError(f"damaged, or no {what}; save it again {again}, or remove it", path=path)


def _other(path: Path) -> str | None:
    """What a file is that Pillow does not know; None if its bytes do not say."""
    if (content := read_member(path)) is not None:
        return misread(content[:START], str(path), "picture", "Pillow")
    with path.open("rb") as file:
        return misread(file.read(START), str(path), "picture", "Pillow")


def data_uri(picture: np.ndarray) -> str:
    """An image as a data URI for browsers: data:image/png;base64,..."""
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "png")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")


CAPTIONED = ListForm("image", "caption", (*PICTURES, ".npy"))
"""A list of pictures with captions."""


def holds_classes(path: Path) -> bool:
    """Whether a list of pictures or clips has classes, by its columns or as they are one word or repeat."""
    file, column = column_of(path)
    names = [column] if column else header_of(file) if is_table(file) else []
    texts = first_texts(path, LABELLED)
    if not texts or CAPTIONED.names_text(names):
        return False
    if not any(texts):  # read as classes
        return not any(first_texts(path, CAPTIONED))
    alike = 2 * len(set(texts)) <= len(texts) or all(len(text.split()) < 2 for text in texts)
    return alike or bool(column) or LABELLED.names_text(names)


class ImageCaptions(NamedTuple):
    """The file of an image, and its captions in order."""

    path: Path
    captions: list[str]
    number: int | str  # COCO's image_id; otherwise the file name without its extension


def read_captions(
    path: Path, images: Path | None = None, *, split: str | None = None, language: str = "en"
) -> list[ImageCaptions]:
    r"""Read images with their captions.

    Args:
        path: a table such as .tsv, .jsonl, or a .json of COCO, Karpathy or BLIP.
        images: folder or .zip of the images; by default the file's folder, or images.zip in it.
        split: keep only this split of records that name one.
        language: which captions to take from a record with captions in several languages.

    Raises:
        DataError: a record is malformed, or its image is missing; names file and line.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.png").write_bytes(b"")
        ...     _ = Path(folder, "captions.tsv").write_text("image\tcaption\na.png\ta red circle\n")
        ...     [image] = read_captions(Path(folder, "captions.tsv"))
        >>> image.captions, image.number
        (['a red circle'], 'a')
    """
    found: dict[Path, ImageCaptions] = {}
    for row in listed_pictures(path, CAPTIONED, folders(path, images), split=split, language=language):
        if isinstance(row, Finding):
            raise row.error()
        if row.path is not None:
            one = ImageCaptions(row.path, [], Path(row.file).stem if row.id == "" else row.id)
            found.setdefault(row.path, one).captions.append(row.text)
    if not found:
        raise DataError(f"expected captions{f' for {split}' if split else ''}, got none", path=path)
    return list(found.values())


def folders(path: Path, images: Path | None = None) -> list[Path]:
    """Folders to search for the images that a file names; see `read_captions`."""
    return folders_for(path) if images is None else archive_folders(images) or [images]
