"""Read image captions; errors name file and line.

Formats: a table with an image name and a caption per row, a .jsonl with a record per image, or COCO's .json.
Read next: listed.py, the tables; images.py.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.data import archive
from weft.data.lines import read_lines
from weft.data.listed import FILES, TEXTS, listed
from weft.data.report import Finding
from weft.errors import DataError
from weft.store import jsonfile

LONGEST_NAME = 255

CAPTIONED = "IMAGE TAB CAPTION"
"""A line of a list of pictures with captions."""

SPLITS = {"train": "train", "training": "train", "val": "valid", "valid": "valid", "dev": "valid"}
SPLITS |= {"validation": "valid", "test": "test"}


_Row = tuple[str, list[str], int | str, int | str]  # name, captions, line or part of the file, number


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
        path: a table such as .tsv, .jsonl or COCO's .json.
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
    where = folders(path, images)
    readers = {".json": _coco, ".jsonl": _records}
    found: dict[str, ImageCaptions] = {}
    for name, captions, at, number in readers.get(path.suffix.lower(), _table)(path, split, language):
        file = located(name, where)
        if file is None:
            missing = str(where[0] / name)[:300]
            raise _wrong(path, at, f"no such picture {missing}; correct the name or remove the caption")
        if not all(caption.strip() for caption in captions):
            raise _wrong(path, at, "the caption is empty; write one or remove it")
        found.setdefault(name, ImageCaptions(file, [], number)).captions.extend(captions)
    whole = [one for one in found.values() if one.captions]
    if not whole:
        raise DataError(f"expected captions{f' for {split}' if split else ''}, got none", path=path)
    return whole


def folders(path: Path, images: Path | None = None) -> list[Path]:
    """Folders to search for the images that a file names; see `read_captions`."""
    if images is None:
        return [path.parent, *archive.folders(path.parent / "images.zip")]
    return archive.folders(images) or [images]


def located(name: str, where: Sequence[Path]) -> Path | None:
    """The file of this name in the first folder that has it; None if none has."""
    if len(name) > LONGEST_NAME:
        return None
    return next((folder / name for folder in where if archive.is_file(folder / name)), None)


def _table(path: Path, split: str | None, language: str) -> Iterator[_Row]:
    for row in listed(path, CAPTIONED):
        if isinstance(row, Finding):
            raise row.error()
        yield row.file, [row.text], row.number, Path(row.file).stem


def _records(path: Path, split: str | None, language: str) -> Iterator[_Row]:
    for number, line in enumerate(read_lines(path), 1):
        record = _parsed(line, path, number)
        record = (
            {str(key).lower(): value for key, value in record.items()} if isinstance(record, dict) else {}
        )
        name = next((record[key] for key in ("image", *FILES) if isinstance(record.get(key), str)), None)
        if name is None:
            what = 'expected a record with "image" (or "file_name"): a name'
            raise DataError(f"{what}; correct or remove the line", path=path, line=number)
        named = record.get("split")
        if split is not None and named is not None and SPLITS.get(str(named), named) != split:
            continue
        captions = next((record[key] for key in ("captions", "caption", *TEXTS) if key in record), None)
        if isinstance(captions, dict):
            captions = captions.get(language)
        captions = [captions] if isinstance(captions, str) else captions
        if not isinstance(captions, list) or not all(isinstance(each, str) for each in captions):
            what = f'expected "captions" in {language!r} (a list of texts)'
            raise DataError(what, path=path, line=number)
        yield name, captions, number, Path(name).stem


def _coco(path: Path, split: str | None, language: str) -> Iterator[_Row]:
    whole = _parsed("\n".join(read_lines(path)), path)
    try:
        names = {image["id"]: str(image["file_name"]) for image in whole["images"]}
        rows = [(one["image_id"], str(one["caption"])) for one in whole["annotations"]]
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            'expected COCO\'s form ("images" with id and file_name, "annotations" with image_id and '
            "caption), got other JSON; convert it, or give a .tsv",
            path=path,
        ) from None
    for at, (number, caption) in enumerate(rows):
        if not isinstance(number, int | str) or number not in names:
            shown = repr(number)[:80]
            raise DataError(
                f"annotation {at + 1} is for image {shown}, which is not among the images", path=path
            )
        yield names[number], [caption], f"annotation {at + 1}", number


def _parsed(text: str, path: Path, line: int | None = None) -> Any:
    try:
        return jsonfile.parse(text)
    except ValueError as error:
        why = str(error).partition(":")[0]
        raise DataError(f"not JSON ({why}); correct it", path=path, line=line) from None


def _wrong(path: Path, at: int | str, why: str) -> DataError:
    """The error for a line, or for another part of a file."""
    if isinstance(at, int):
        return DataError(why, path=path, line=at)
    return DataError(f"{at}: {why}", path=path)
