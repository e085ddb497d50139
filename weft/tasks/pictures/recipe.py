"""What `weft init` writes for a task on pictures with captions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from weft.data.images import CAPTIONED, ImageCaptions, folders, read_captions
from weft.data.listed import ListedText, listed
from weft.tasks.init import (
    TEST,
    TRAIN,
    VALID,
    NewRecipe,
    Option,
    TemplateInit,
    examples_held_out,
    files_of,
    only,
    splits,
    survey,
)
from weft.wording import plural


class CaptionsInit(TemplateInit):
    """A recipe for pictures with captions, read with sides of at most `largest` pixels."""

    options: ClassVar = (
        TRAIN._replace(help="Training captions: a table (.csv, .tsv, .xlsx), .jsonl, or COCO's .json."),
        Option("images", "Folder of the pictures. Default: the folder of the captions.", Path),
        VALID._replace(
            help="Validation captions. Default: those beside the training captions, else some of them."
        ),
        TEST._replace(help="Test captions. Default: those next to the training captions, if any."),
    )
    examples: ClassVar = ("photos/train.tsv --images photos",)
    cells: ClassVar = CAPTIONED[:2]
    lists_files: ClassVar = True
    largest: ClassVar[int]

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        images = ("--images", str(given["images"])) if given["images"] else ()
        written = super().write(given, say)
        return written._replace(steps=[(*step, *images) for step in written.steps])

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        train, valid, test = files_of(given)
        images: Path | None = given["images"]
        valid, test = valid or _itself(train, images, "valid"), test or _itself(train, images, "test")
        found = read_captions(train, images, split="train")
        seen = survey((caption,) for one in found for caption in one.captions)
        side = _side(found, self.largest)
        return {
            "counted": f"{plural(len(found), 'picture')} with {plural(seen.texts, 'caption')}",
            "longest": seen.counted(seen.longest),
            **splits(train, valid, test),
            "every": examples_held_out(len(found)),
            "images": images,
            "side": side,
            "pictures": only(side is not None),
            "features": only(side is None),
            "max_length": max(10, seen.longest + 4),
            "epochs": max(4, min(60, 80_000 // seen.texts)),
        }


def _itself(train: Path, images: Path | None, split: str) -> Path | None:
    """The list itself if its rows have this split."""
    rows = listed(train, CAPTIONED, where=folders(train, images))
    return train if any(isinstance(row, ListedText) and row.split == split for row in rows) else None


def _side(found: list[ImageCaptions], most: int) -> int | None:
    if found[0].path.suffix.lower() == ".npy":
        return None
    from weft.tasks.pictures.data import read  # loads torch

    return rounded(median(max(read(one.path, None).shape[:2]) for one in found[:20]), most)


def rounded(side: float, most: int) -> int:
    """The side, limited to `most`, as a multiple of 8."""
    return int(max(8, min(most, 8 * round(side / 8))))
