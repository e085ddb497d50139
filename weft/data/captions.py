"""Read image captions; errors name file and line.

Formats: a table with an image name and a caption per row, a .jsonl with a record per image, or a .json of
COCO, Karpathy or BLIP. Read next: listed.py, which reads them; images.py.
"""

from pathlib import Path
from typing import NamedTuple

from weft.data import archive
from weft.data.images import LABELLED, PICTURES
from weft.data.listed import ListForm, column_of, first_texts, folders_for, listed_pictures
from weft.data.report import Finding
from weft.data.tables import header_of, is_table
from weft.errors import DataError

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
    return folders_for(path) if images is None else archive.folders(images) or [images]
