"""What `weft init` writes for a task on pictures with captions, with the reasons as comments."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from weft.data.captions import SPLITS, Captioned, read_captions
from weft.data.lines import read_lines
from weft.errors import ConfigError
from weft.tasks.init import TEST, TRAIN, VALID, Init, NewRecipe, Option
from weft.tasks.shared.recipe_text import VALID_NAMES, quoted, sibling
from weft.wording import plural


class CaptionsInit(Init):
    """A recipe for pictures with captions; each task adds its model.

    Attributes:
        largest: largest side in pixels at which pictures are read.
        metric: value and comment of the recipe's `metric`.
        decoding: the section `decoding`, as YAML.
    """

    options: ClassVar = (
        TRAIN._replace(help="Training captions: .tsv (IMAGE TAB CAPTION), .jsonl, or COCO's .json."),
        Option("images", "Folder of the pictures. Default: the folder of the captions.", Path),
        VALID._replace(help="Validation captions. Default: those next to the training captions, if any."),
        TEST._replace(help="Test captions. Default: those next to the training captions, if any."),
    )
    examples: ClassVar = ("--train photos/train.tsv --images photos",)
    largest: ClassVar[int]
    metric: ClassVar[str]
    decoding: ClassVar[str]

    @abstractmethod
    def model(self, side: int | None) -> str:
        """The last lines of section `data`, and section `model`.

        Args:
            side: of the pictures in pixels; None for given features.
        """

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the pictures."""
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
        captions = [caption for one in found for caption in one.captions]
        longest = max(len(caption.split()) for caption in captions)
        side = _side(found, self.largest)
        folder = f"\n  images: {quoted(images)}" if images else ""
        tested = (
            f"  test: {quoted(test)}" if test else "  # test: path/test.tsv            for `weft evaluate`"
        )
        epochs = max(4, min(60, 80_000 // len(captions)))
        size = f"  size: {side}                          # side in pixels that every picture is scaled to\n"
        if side is None:
            size = "  # given features: nothing is scaled\n"
        counted = f"{plural(len(found), 'picture')} with {plural(len(captions), 'caption')}"
        head = f"""# {counted} (the longest has {longest} words).
# Written by `weft init`; change any line you like.
#   weft train THIS-FILE
task: {self.task}
data:
  train: {quoted(train)}{folder}
  valid: {quoted(valid)}
{tested}
{size}  vocabulary: {{kind: word, size: null, lowercase: true}}   # or character, bpe
  max_length: {max(10, longest + 4)}                    # maximum tokens of a caption
  batch_rows: 64
"""
        return f"""{head}{self.model(side)}training:
  optimiser: {{use: adamw, lr: 0.001, weight_decay: 0.01}}
  schedule: {{use: cosine, warmup: 100}}
  max_epochs: {epochs}
  metric: {self.metric}
  patience: 6
  seed: 1
decoding: {self.decoding}
"""


def _itself(train: Path, split: str) -> Path | None:
    """The file itself if it is a .jsonl whose records have a split."""
    if train.suffix.lower() != ".jsonl":
        return None
    said = (f'"split": "{name}"' for name, known in SPLITS.items() if known == split)
    wanted = tuple(said)
    return train if any(any(each in line for each in wanted) for line in read_lines(train)) else None


def _side(found: list[Captioned], most: int) -> int | None:
    if found[0].path.suffix.lower() == ".npy":
        return None
    from weft.tasks.pictures.data import read  # loads torch

    return rounded(median(max(read(one.path, None).shape[:2]) for one in found[:20]), most)


def rounded(side: float, most: int) -> int:
    """The side, limited to `most`, as a multiple of 8."""
    return int(max(8, min(most, 8 * round(side / 8))))
