"""What `weft init` finds out about a user's files: their texts, the files beside them, a training length.

Read next: init.py, which fills a template with it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from weft.data.parallel import ParallelText, both
from weft.errors import DataError
from weft.text.normalise import normalise
from weft.text.pieces import count_parts, count_words

SMALL = 50_000
"""Pairs below which a set of parallel text is small."""

VALID_NAMES = ("valid", "val", "dev", "validation")
UPDATES = 600
"""Minimum number of updates of a training."""

EPOCHS = 60
"""Maximum number of epochs to reach UPDATES."""


class Survey(NamedTuple):
    """Properties of the texts of a task.

    Attributes:
        texts: number of texts, lines or pairs.
        words: in all of them; of a pair, those of the longer side.
        longest: words of the longest text.
        characters: in all of them, with the ends of lines.
        seen: how often each word occurs, in the first `most` texts.
    """

    texts: int
    words: int
    longest: int
    characters: int
    seen: Counter[str]

    @property
    def mean(self) -> float:
        """Words of a text on average."""
        return self.words / max(1, self.texts)

    @property
    def repeated(self) -> int:
        """Number of words that occur twice or more."""
        return sum(count > 1 for count in self.seen.values())


def survey(
    texts: Iterable[tuple[str, ...]],
    *,
    cut: Callable[[str], Iterable[str] | Mapping[str, int]] = str.split,
    most: float = math.inf,
) -> Survey:
    """Read all texts once.

    Args:
        texts: each with one side, or the two of a pair.
        cut: how a side is cut into the words of `seen`; or gives their counts.
        most: number of texts whose words are counted in `seen`.

    Example:
        >>> found = survey([("a rose is a rose",), ("so it is",)])
        >>> found.texts, found.words, found.longest, found.repeated
        (2, 8, 5, 3)
    """
    count = words = longest = characters = 0
    seen: Counter[str] = Counter()
    for sides in texts:
        length = max(len(side.split()) for side in sides)
        count, words, longest = count + 1, words + length, max(longest, length)
        characters += sum(len(side) + 1 for side in sides)
        if count <= most:
            for side in sides:
                seen.update(cut(side))
    return Survey(count, words, longest, characters, seen)


def survey_pairs(train: Path, source: str, target: str) -> tuple[Survey, int]:
    """Properties of parallel text, and how many parts of words occur twice or more.

    The words, cut at punctuation, are those of the first SMALL pairs; a part has two characters or more.

    Raises:
        DataError: there are no pairs, or files are missing or damaged.
    """
    pairs = ((one, other) for _, one, other in ParallelText(train, source, target))
    seen = survey(pairs, cut=lambda text: count_words([normalise(text)])[0], most=SMALL)
    if not seen.texts:
        raise DataError("expected at least a few thousand pairs, got none", path=train)
    parts = count_parts(seen.seen, "bpe").items()
    return seen, sum(count > 1 and len(part) > 1 for part, count in parts)


class TrainingLength(NamedTuple):
    """The length of a training."""

    epochs: int
    warmup: int  # updates, at most a tenth of all


def planned(batches: float, *, epochs: int, warmup: int) -> TrainingLength:
    """More epochs if the usual number gives too few updates, and a short warm-up.

    Args:
        batches: approximate number per epoch.
        epochs: usual number for a large data set.
        warmup: usual number of updates.
    """
    batches = max(1.0, batches)
    epochs = max(epochs, min(EPOCHS, math.ceil(UPDATES / batches)))
    return TrainingLength(epochs, max(1, min(warmup, int(batches * epochs / 10))))


def sibling(train: Path, names: tuple[str, ...]) -> Path | None:
    """A file named like the training file, but valid (val, dev) or test instead of train."""
    for name in names:
        candidate = train.with_name(train.name.replace("train", name))
        if candidate != train and candidate.is_file():
            return candidate
    return None


def files_of(given: Mapping[str, Any]) -> tuple[Path, Path | None, Path | None]:
    """The files for training, validation and test: as given, or found next to the training file."""
    train: Path = given["train"]
    return train, given["valid"] or sibling(train, VALID_NAMES), given["test"] or sibling(train, ("test",))


def sibling_pairs(train: Path, names: tuple[str, ...], source: str, target: str) -> Path | None:
    """Files of parallel text named like the training files, but valid (val, dev) or test instead of train."""
    parts = both(train) or (train,)
    for name in names:
        renamed = [part.with_name(part.name.replace("train", name)) for part in parts]
        if renamed == list(parts):
            continue
        candidate = Path(",".join(map(str, renamed)))
        try:
            ParallelText(candidate, source, target)
            return candidate
        except DataError:
            continue
    return None
