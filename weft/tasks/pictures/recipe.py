"""What `weft init` writes for a task on pictures with captions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from weft.data.captions import SPLITS, ImageCaptions, read_captions
from weft.data.lines import read_lines
from weft.errors import ConfigError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option, filled, only, splits
from weft.tasks.survey import VALID_NAMES, sibling, survey
from weft.wording import plural


class CaptionsInit(Init):
    """A recipe for pictures with captions.

    Attributes:
        largest: largest side in pixels at which pictures are read.
    """

    options: ClassVar = (
        TRAIN._replace(help="Training captions: .tsv (IMAGE TAB CAPTION), .jsonl, or COCO's .json."),
        Option("images", "Folder of the pictures. Default: the folder of the captions.", Path),
        VALID._replace(help="Validation captions. Default: those next to the training captions, if any."),
        TEST._replace(help="Test captions. Default: those next to the training captions, if any."),
    )
    examples: ClassVar = ("photos/train.tsv --images photos",)
    largest: ClassVar[int]

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        text = self.recipe(given["train"], given["valid"], given["test"], given["images"])
        return NewRecipe(text, [self.check(given["train"])])

    def recipe(self, train: Path, valid: Path | None, test: Path | None, images: Path | None) -> str:
        """A commented recipe.

        Args:
            train, valid, test: captions files; if None, the last two are looked for next to the first, or are
                the first if its records have a split.
            images: folder of the pictures.

        Raises:
            ConfigError: there are no validation captions.
            DataError: files are missing or damaged.
        """
        valid = valid or sibling(train, VALID_NAMES) or _itself(train, "valid")
        test = test or sibling(train, ("test",)) or _itself(train, "test")
        if valid is None:
            raise ConfigError(f"no validation captions next to {train}; name them with --valid")
        found = read_captions(train, images, split="train")
        seen = survey((caption,) for one in found for caption in one.captions)
        side = _side(found, self.largest)
        return filled(
            self.folder,
            {
                "counted": f"{plural(len(found), 'picture')} with {plural(seen.texts, 'caption')}",
                "longest": seen.longest,
                **splits(train, valid, test),
                "images": images,
                "side": side,
                "pictures": only(side is not None),
                "features": only(side is None),
                "max_length": max(10, seen.longest + 4),
                "epochs": max(4, min(60, 80_000 // seen.texts)),
            },
        )


def _itself(train: Path, split: str) -> Path | None:
    """The file itself if it is a .jsonl whose records have a split."""
    if train.suffix.lower() != ".jsonl":
        return None
    wanted = tuple(f'"split": "{name}"' for name, known in SPLITS.items() if known == split)
    return train if any(any(each in line for each in wanted) for line in read_lines(train)) else None


def _side(found: list[ImageCaptions], most: int) -> int | None:
    if found[0].path.suffix.lower() == ".npy":
        return None
    from weft.tasks.pictures.data import read  # loads torch

    return rounded(median(max(read(one.path, None).shape[:2]) for one in found[:20]), most)


def rounded(side: float, most: int) -> int:
    """The side, limited to `most`, as a multiple of 8."""
    return int(max(8, min(most, 8 * round(side / 8))))
