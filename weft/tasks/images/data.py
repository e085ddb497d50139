"""A recipe's section `data` for pictures or clips of several classes.

Read next: ../../data/images.py, which reads them; ../../data/shapes.py, which makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from weft.data.images import LabelledImage, is_clip, read_clip, read_folders, read_picture, stack
from weft.data.shapes import moving, shapes
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.setting_types import AtLeastOne, Bounds, Features, Whole, check_fields
from weft.tasks.labels.splits import HeldOut, check_classes, parts
from weft.tasks.pictures.data import LEAST, SIDE
from weft.tasks.task import SPLITS, Split

FRAMES = 6
"""Default number of frames of a generated clip."""


class LabelledPictures(NamedTuple):
    """Pictures or clips of one shape with their classes."""

    pixels: np.ndarray  # [N, height, width, 3] or [N, time, height, width, 3] uint8
    labels: list[str]
    names: list[str]


@dataclass(frozen=True, kw_only=True)
class ClassData:
    """Pictures or clips in a folder for each class. All of a split are held in memory.

    Args:
        generated: made-up data instead of files: "shapes" (which of four shapes does a picture show?) or
            "moving" (clips with two moving shapes and a still one: where does the one with the still one's
            colour go?).
        train, valid, test: folders with a folder for each class, or lists of files with their classes:
            pictures, or clips as .gif or .npy ([time, height, width] or [time, height, width, 3], 0 to 255
            or 0 to 1); a .gif among pictures is a picture.
        folder: parent of these folders; by default the current one.
        hold_out: without `valid`, 10 holds out a tenth of the training pictures to choose the checkpoint.
        split_seed: shuffles before hold_out splits, every class in proportion. null, as in older recipes,
            takes every k-th picture in the order of the folders.
        size: side in pixels that pictures and frames are scaled to; null if all have the same size.
        frames: number of frames per clip, evenly spaced; null if all clips have the same number.
        examples, valid_examples, test_examples: number of generated examples.
        batch_rows: pictures per batch.
        seed: of the generated data.
    """

    generated: Literal["shapes", "moving"] | None = None
    train: str | None = None
    valid: str | None = None
    test: str | None = None
    folder: Path = Path()
    hold_out: Annotated[int, Bounds(ge=2)] = 10
    split_seed: Whole | None = None
    size: Features | None = None
    frames: AtLeastOne | None = None
    examples: AtLeastOne = 4000
    valid_examples: AtLeastOne = 300
    test_examples: AtLeastOne = 1000
    batch_rows: AtLeastOne = 32
    seed: Whole = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.generated and self.size is not None and self.size < LEAST:
            raise ConfigError(f"size: expected at least {LEAST} pixels, got {self.size}")
        if (self.generated is None) == (self.train is None):
            raise ConfigError("set exactly one of generated (shapes or moving) and train (your files)")

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        return self.generated is not None or split == "valid" or getattr(self, split) is not None

    def find(self, split: Split) -> list[LabelledImage]:
        """The files of a split; empty if it is generated."""
        if self.generated is not None:
            return []
        path = getattr(self, split)
        if path is not None and (split != "train" or self.valid is not None):
            return read_folders(self.folder / path, split)
        if split == "test":
            raise MissingSplitError.of(split, "pictures", "FOLDER")
        assert self.train is not None
        whole = read_folders(self.folder / self.train)
        if self.valid is not None:
            return whole
        labels = [one.label for one in whole]
        split_of = parts(labels, HeldOut(hold_out=self.hold_out, seed=self.split_seed))
        return [one for one, part in zip(whole, split_of, strict=True) if part == split]

    def check_classes(self, split: Split, labels: Sequence[str]) -> None:
        """Check that a split has more than one class."""
        cut = self.generated is None and self.valid is None
        check_classes(labels, self.describe(split), cut=cut, seed=self.split_seed)

    def load(self, split: Split) -> LabelledPictures:
        """All pictures or clips of a split."""
        if self.generated is None:
            return self.read(self.find(split))
        count = {"train": self.examples, "valid": self.valid_examples, "test": self.test_examples}[split]
        seed, numbers, size = [self.seed, SPLITS.index(split)], range(count), self.size or SIDE
        names = [f"{split}-{number}" for number in numbers]
        if self.generated == "moving":
            return LabelledPictures(*moving(seed, numbers, size, self.frames or FRAMES), names)
        pixels, seen = shapes(seed, numbers, size)
        return LabelledPictures(pixels, [one.shape for one in seen], names)

    def read(self, found: Sequence[LabelledImage]) -> LabelledPictures:
        """The pictures or clips of these files."""
        paths = [one.path for one in found]
        remedy = "scale them, for example with data.size: 32, and set data.frames for clips"
        clips = all(map(is_clip, paths))
        pixels = stack(paths, [self.one(path, clips) for path in paths], remedy)
        return LabelledPictures(pixels, [one.label for one in found], [path.name for path in paths])

    def one(self, path: Path, clip: bool) -> np.ndarray:
        """A picture, or a clip; a .gif is a picture among pictures."""
        return read_clip(path, self.size, self.frames) if clip else read_picture(path, self.size)

    def likely(self) -> tuple[int, ...]:
        """The shape of pictures or clips, as far as the recipe determines it."""
        side = self.size or SIDE
        clips = self.generated == "moving" or self.frames is not None
        if self.generated is None and self.train is not None and not clips:
            try:
                clips = all(is_clip(one.path) for one in self.find("train"))
            except DataError:
                clips = False
        return (self.frames or FRAMES, side, side, 3) if clips else (side, side, 3)

    def describe(self, split: Split) -> str:
        """The data of a split, for a title."""
        if self.generated is not None:
            return f"generated {self.generated}, {split}, {self.size or SIDE} pixels, seed {self.seed}"
        if getattr(self, split) is None:
            shuffled = "" if self.split_seed is None else f" (split seed {self.split_seed})"
            return f"every {self.hold_out}th of {Path(str(self.train)).name}{shuffled}"
        return f"{Path(str(getattr(self, split))).name} {split}"
