"""Several files as one, which a recipe's `train` may list, and which examples of it are held out.

Read next: parallel.py, which reads pairs from them; labelled.py.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any
from zlib import crc32

from weft.errors import ConfigError, DataError

Files = str | list[str]  # a recipe's training files: one, or a list of files and folders

PART = re.compile(r"(?<![a-z])(train(?:ing)?|valid(?:ation)?|val|dev|test[ab]?)(?![a-z])", re.IGNORECASE)
_PARTS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testb": "test",
}  # testa of CoNLL-2003 is valid


def each_file(names: Files, folder: Path = Path()) -> list[Path]:
    """The files of a list; a folder in it stands for all files in it, in the order of their names."""
    if isinstance(names, str):
        return [folder / names]
    found = [file for name in names for file in (inside(folder / name) or [folder / name])]
    if not found:
        raise DataError("data.train: expected at least one file in the list, got none; name one")
    if twice := [file for n, file in enumerate(found) if file in found[:n]]:
        raise DataError("is in the list of training files twice; name it once", path=twice[0])
    return found


def is_folder(path: Path) -> bool:
    """Whether it is one; what cannot be read is named where it is opened."""
    try:
        return path.is_dir()
    except OSError:
        return False


def inside(path: Path) -> list[Path]:
    """The files in a folder, without hidden ones; empty if it is none."""
    if not is_folder(path):
        return []
    found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not found:
        raise DataError("expected files in the folder, got none; name another one", path=path)
    return found


def called(names: Files) -> str:
    """What a training text is called in signatures: a.tsv, or a.tmx and 2 more."""
    if isinstance(names, str):
        return Path(names).name
    return Path(names[0]).name + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def parts_by_name(files: Sequence[Path]) -> tuple[list[Path], Path | None, Path | None] | None:
    """Files for training, and those whose names say that they are for validation and test.

    None if that is not told: some files are called train and others nothing, or two are the same or for the
    same part. CoNLL-2003 calls its parts train, testa (validation) and testb.

    Example:
        >>> parts_by_name([Path("a.tmx"), Path("dev.tsv"), Path("b.xlsx")])
        ([PosixPath('a.tmx'), PosixPath('b.xlsx')], PosixPath('dev.tsv'), None)
    """
    found = [PART.search(file.name) for file in files]
    said = [_PARTS.get(one[0].lower(), "valid") if one else "" for one in found]
    held = {part: file for part, file in zip(said, files, strict=True) if part in ("valid", "test")}
    train = [file for part, file in zip(said, files, strict=True) if part in ("", "train")]
    if (
        len({*files}) < len(files)
        or not train
        or {"", "train"} <= {*said}
        or len(train) + len(held) < len(files)
    ):
        return None
    return train, held.get("valid"), held.get("test")


LINES = 10**9
"""More than a file has: the number of an example is this times its file's, and its line."""


class JoinedTexts:
    """Texts one after the other, whose numbers tell the file and the line."""

    def __init__(self, texts: Sequence[Any]) -> None:
        self.texts = texts
        self.files = [file for text in texts for file in text.files]
        self.notes = [note for text in texts for note in text.notes]
        self._firsts = [0, *accumulate(len(text.files) for text in texts)]  # texts may be joined ones

    def __iter__(self) -> Iterator[Any]:
        for first, text in zip(self._firsts, self.texts, strict=False):
            yield from (one._replace(number=one.number + first * LINES) for one in text)

    def place(self, number: int) -> str:
        """The place of an example, as file:line."""
        place = bisect(self._firsts, number // LINES) - 1
        return str(self.texts[place].place(number - self._firsts[place] * LINES))


def repeats(parts: Iterable[tuple[str, Iterable[Any]]]) -> list[str]:
    """How many examples of each file are in the files before it, too."""
    seen, found = set[int](), list[str]()
    for name, examples in parts:
        read = [hash(one) for one in examples]
        if again := sum(one in seen for one in read):
            found.append(f"{name}: {again:,} of {len(read):,} are in the files before it, too")
        seen |= {*read}
    return found


def is_held_out(number: int, every: int) -> bool:
    """Whether an example is the one held out of its block; a hash of the block tells its place there."""
    block, place = divmod(number, every)
    return place == (crc32(str(block).encode()) % every if block else 0)


def check_hold_out(hold_out: int, *, valid: str | None, own: str = "") -> None:
    """Check that a section `data` has validation data, and from one place."""
    if hold_out < 0 or hold_out == 1:
        raise ConfigError(
            f"hold_out: expected 0 for none or at least 2, got {hold_out}; 20 holds out one example of 20"
        )
    if hold_out and (own or valid):
        raise ConfigError(f"hold_out: cannot be combined with {own or 'validation files'}; leave one out")
    if not (hold_out or own or valid):
        raise ConfigError(
            "valid: expected validation files in addition to train; or set hold_out: 20 to hold out one "
            "example of 20"
        )


def rank(number: int, seed: int) -> bytes:
    """A sort key that shuffles examples: a hash, the same in all versions of Python and NumPy."""
    return blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()
