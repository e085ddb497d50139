"""`weft init images`: a recipe for a user's pictures or clips."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from weft.data.images import LABELLED, is_clip, parts_in, read_clip, read_folders
from weft.errors import DataError
from weft.tasks.init import TEST, TRAIN, VALID, VALID_NAMES, NewRecipe, TemplateInit, files_of, splits
from weft.tasks.pictures.recipe import rounded
from weft.wording import plural

LARGEST = 64
"""Largest side in pixels at which a small convolutional net is fast on a CPU."""


class ImagesInit(TemplateInit):
    """A recipe for pictures or clips in a folder for each class."""

    about: ClassVar[str] = "A classifier for pictures or clips."
    examples: ClassVar = ("photos/train",)
    cells: ClassVar = LABELLED[:2]
    lists_files: ClassVar = True
    options: ClassVar = (
        TRAIN._replace(
            help="Training folder with a folder for each class, or a list: pictures, or clips (.gif, .npy)."
        ),
        VALID._replace(help="Validation folder. Default: valid, val or dev next to the training folder."),
        TEST._replace(help="Test folder. Default: test next to the training folder."),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """All parts are checked, as their pictures and classes are compared."""
        train, valid, test = _parts(given)
        parts = [str(one) for one in (train, valid, test) if one is not None]
        return super().write(given, say)._replace(steps=[self.check(list(dict.fromkeys(parts)))])

    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        from weft.tasks.labels.splits import thinly_held_out, thinly_scored
        from weft.tasks.pictures.data import HOLD_OUT, MORE, read  # loads torch

        train, valid, test = _parts(given)
        found = read_folders(train)
        counts = Counter(one.label for one in found)
        if len(counts) < 2:
            raise DataError(
                f"expected at least 2 classes, got {len(counts)}; see weft data check", path=train
            )
        if valid is not None:
            kept = Counter(one.label for one in read_folders(valid, "valid"))
            thin = thinly_scored(counts, kept, f"add pictures to {valid}")
        else:
            thin = thinly_held_out(counts, HOLD_OUT, MORE)
        if thin:
            say(thin)
        clips = all(is_clip(one.path) for one in found)
        shapes = [
            (read_clip if clips else lambda path: read(path, None))(one.path).shape for one in found[:20]
        ]
        side = rounded(median(max(shape[-3:-1]) for shape in shapes), LARGEST)
        sizes = [32, 64, *[128] * (1 if clips else _halvings(side) - 2)]
        classes = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(6))
        return {
            "counted": f"{plural(len(counts), 'class')}, {len(found):,} {'clips' if clips else 'pictures'}",
            "classes": classes,
            **splits(train, valid, test),
            "side": side,
            "frames": min(shape[0] for shape in shapes) if clips else None,
            "sizes": sizes,
            "epochs": max(4, min(60, 40_000 // len(found))),
        }


def _halvings(side: int) -> int:
    """Stages after which one place sees the whole picture; after n stages it sees 2^(n+1) - 1 pixels.

    Printed digits of 32 pixels, 11 epochs, fonts not used in training: 0.848 with three stages, 0.979 with
    four.
    """
    return max(3, math.ceil(math.log2(side)) - 1)


def _parts(given: Mapping[str, Any]) -> tuple[Path, Path | None, Path | None]:
    """Folders or lists for training, validation and test: as given, inside the folder or beside it."""
    inside = parts_in(given["train"])
    train, valid, test = files_of({**given, "train": inside.get("train", given["train"])})
    valid = valid or inside.get("valid") or _folder_beside(train, VALID_NAMES)
    return train, valid, test or inside.get("test") or _folder_beside(train, ("test",))


def _folder_beside(train: Path, names: tuple[str, ...]) -> Path | None:
    found = [train.with_name(name) for name in names if train.with_name(name).is_dir()]
    return found[0] if found else None
