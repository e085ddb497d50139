"""Split a parallel text reproducibly into training and held-out pairs. Read next: parallel.py."""

import csv
import io
import re
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

from weft.data.parallel import ParallelText, both, is_memory
from weft.data.tables import is_table
from weft.errors import ConfigError, DataError
from weft.store import files

SEED = 1
_ENDING = re.compile(r"[\w-]+")


def rank(number: int, seed: int) -> bytes:
    """A sort key that shuffles examples.

    It is a hash instead of a random number, so that the order is the same in all versions of Python and
    NumPy.

    Example:
        >>> sorted(range(7), key=lambda number: rank(number, 1))
        [0, 5, 1, 3, 2, 6, 4]
    """
    return blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()


def hold_out(path: Path, source: str, target: str, count: int) -> tuple[Path, Path]:
    """Write PATH.rest.* and PATH.held.*, the latter with `count` random pairs.

    Returns:
        The prefixes of the two new texts, or the tables.
    """
    text = ParallelText(path, source, target)
    total = sum(1 for _ in text)
    if count < 1 or total < 10 * count:
        raise ConfigError(f"{path}: cannot hold out {count:,} of {total:,} pairs; hold out at most a tenth")
    stem = path.with_suffix("") if is_table(path) or is_memory(path) else path
    if (two := both(path)) is not None:
        stem = two[0].with_name(f"{source}-{target}")
    table = not (_ENDING.fullmatch(source) and _ENDING.fullmatch(target))
    rest, held = (stem.with_name(f"{stem.name}.{part}{'.tsv' * table}") for part in ("rest", "held"))
    places = {
        (part, language): part if table else Path(f"{part}.{language}")
        for part in (rest, held)
        for language in (source, target)
    }
    for file in places.values():
        if file.exists():
            raise ConfigError(
                f"{file}: already exists; remove it, or train on the split: --train {rest} --valid {held}"
            )
    chosen = set(sorted(range(total), key=lambda number: rank(number, SEED))[:count])
    try:
        with ExitStack() as stack:
            opened = {
                file: stack.enter_context(files.replacing(file)) for file in dict.fromkeys(places.values())
            }
            if table:
                for opened_file in opened.values():
                    opened_file.write(_row(source, target))
            for place, pair in enumerate(text):
                part = held if place in chosen else rest
                if table:
                    opened[part].write(_row(pair.source, pair.target))
                else:
                    opened[places[part, source]].write(f"{pair.source}\n".encode())
                    opened[places[part, target]].write(f"{pair.target}\n".encode())
    except OSError as error:
        raise DataError(f"cannot be split ({error.strerror})", path=path) from error
    return rest, held


def _row(*cells: str) -> bytes:
    """A row of a .tsv, with quotes where a cell needs them."""
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
