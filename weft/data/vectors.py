"""Read and write word vectors in the formats of word2vec (text, binary) and GloVe (text).

text     a word and its numbers on each line, separated by spaces; word2vec begins with a line "words size"
binary   "words size" LF, then each word, a space, its numbers as float32 (little-endian), LF
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from weft.data.files import file_bytes
from weft.data.lines import read_lines
from weft.errors import DataError
from weft.store import files

Vectors = tuple[dict[str, np.ndarray], int]
_HEAD = re.compile(rb"(\d{1,18}) (\d{1,18})\r?\n")
_MOST = 1_000_000  # maximum vector size; a header with more is damaged
_GAP = re.compile(r"[ \t\n\r\v\f]")


def read_vectors(path: Path, wanted: Collection[str] | None = None) -> Vectors:
    """Read the vectors of the wanted words, and their size.

    Args:
        path: the file, possibly compressed; .bin means word2vec's binary format.
        wanted: words; None for all.

    Raises:
        DataError: a line is not a word with as many numbers as the other lines, or a binary file is
            truncated.
    """
    if ".bin" in path.suffixes:
        return _read_binary(path, wanted)
    found: dict[str, np.ndarray] = {}
    size = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.count(" ") > _MOST:
            raise DataError(
                f"expected a word2vec or GloVe text file, got a line of more than {_MOST:,} numbers",
                path=path,
                line=number,
            )
        cells = line.rstrip(" ").split(" ")
        if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
            continue
        size = size or len(cells) - 1
        if len(cells) - 1 != size or size < 1:
            raise DataError(
                f"expected a word and {size or 'some'} numbers, got {len(cells) - 1}; "
                "give a text file of word2vec or GloVe",
                path=path,
                line=number,
            )
        if wanted is not None and cells[0] not in wanted:
            continue
        try:
            with np.errstate(over="ignore"):  # infinite values are rejected below
                vector = np.array([float(cell) for cell in cells[1:]], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, dtype=np.float32)
        if not np.isfinite(vector).all():
            raise DataError(
                "expected finite numbers after the word; correct the line", path=path, line=number
            )
        found[cells[0]] = vector
    return found, size


def _read_binary(path: Path, wanted: Collection[str] | None) -> Vectors:
    data = b"".join(file_bytes(path))
    head = _HEAD.match(data)
    count, size = (int(number) for number in head.groups()) if head else (0, 0)
    if head is None or not 0 < size < _MOST:
        raise DataError(
            "expected a first line with the number of words and the size of a vector; "
            "give a binary file of word2vec, or name a text file .txt",
            path=path,
        )
    at, found = head.end(), {}
    for number in range(1, count + 1):
        space = data.find(b" ", at)
        end = space + 1 + 4 * size
        if space < 0 or end > len(data):
            raise DataError(
                f"ends in word {number:,} of {count:,}; the file is damaged or incomplete", path=path
            )
        word = data[at:space].lstrip(b"\n").decode("utf-8", "replace")
        if wanted is None or word in wanted:
            vector = np.frombuffer(data, "<f4", size, space + 1).astype(np.float32)
            if not np.isfinite(vector).all():
                raise DataError(f"word {number:,} ({word!r}) has a number that is not finite", path=path)
            found[word] = vector
        at = end
    return found, size


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """Write vectors atomically: .bin in word2vec's binary format, .glove as GloVe text, others word2vec text.

    Args:
        words: [N], without white space.
        vectors: [N, D].

    Raises:
        DataError: a word contains white space, or the file cannot be written.
    """
    wrong = next((word for word in words if not word or _GAP.search(word)), None)
    if wrong is not None:
        raise DataError(
            f"the word {wrong!r} is empty or contains white space, which no reader accepts", path=path
        )
    try:
        with files.replacing(path) as file:
            for some in _bytes(path, words, vectors.astype("<f4")):
                file.write(some)
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); free some space or choose another place",
            path=path,
        ) from error


def _bytes(path: Path, words: Sequence[str], vectors: np.ndarray) -> Iterator[bytes]:
    if path.suffix != ".glove":
        yield f"{len(words)} {vectors.shape[1]}\n".encode()
    for word, vector in zip(words, vectors, strict=True):
        if path.suffix == ".bin":
            yield word.encode() + b" " + vector.tobytes() + b"\n"
        else:
            yield f"{word} {' '.join(f'{number:.9g}' for number in vector.tolist())}\n".encode()
