"""Word vectors in the formats of word2vec (text, binary) and GloVe (text), and the questions that test them.

text     a word and its numbers on each line, separated by spaces; word2vec begins with a line "words size"
binary   "words size" LF, then each word, a space, its numbers as float32 (little-endian), LF
pairs    tiger TAB cat TAB 7.35, also with spaces: WordSim-353, MEN, SimLex-999
analogy  : capital-common-countries, a heading, then four words per line: a is to b as c is to d

NumPy reads tables of numbers only; here words may contain spaces, and a file may be larger than the memory.
"""

import codecs
import math
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.data.files import file_bytes
from weft.data.lines import read_lines
from weft.data.magic import START, kind_of_bytes
from weft.data.tables import is_number
from weft.errors import DataError, DataWarning
from weft.store import files
from weft.wording import plural

Vectors = tuple[dict[str, np.ndarray], int]
_HEAD = re.compile(rb"(\d{1,18}) (\d{1,18})\r?\n")
_MOST = 1_000_000  # maximum vector size; a header with more is damaged
_FIRST = 100  # lines that the size of a file without a header is read from
_GAP = re.compile(r"[ \t\n\r\v\f]")
FEW = 0.5  # share of the tokens below which something is probably wrong


class VectorEntry(NamedTuple):
    """A word of a file, and its numbers as the file writes them."""

    word: str
    numbers: Sequence[str] | np.ndarray
    line: int  # of a text file, or the number of the word


def read_vectors(path: Path, wanted: Collection[str] | None = None) -> Vectors:
    """Read the vectors of the wanted words, and their size.

    Args:
        path: the file, possibly compressed; text, or word2vec's binary format.
        wanted: words; None for all.

    Raises:
        DataError: a line is not a word with as many numbers as the other lines, or a binary file is
            truncated.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from weft.data import write_vectors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "vectors.txt"
        ...     write_vectors(path, ["cat", "dog"], np.eye(2, dtype=np.float32))
        ...     words, size = read_vectors(path, {"dog"})
        >>> words, size
        ({'dog': array([0., 1.], dtype=float32)}, 2)
    """
    found: dict[str, np.ndarray] = {}
    size = 0
    for word, numbers, line in _entries(path):
        size = len(numbers)
        if wanted is not None and word not in wanted:
            continue
        try:
            with np.errstate(over="ignore"):  # infinite values are rejected below
                vector = np.array([float(number) for number in numbers], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, dtype=np.float32)
        if not np.isfinite(vector).all():
            place = f"word {line:,} ({word[:40]!r})" if isinstance(numbers, np.ndarray) else repr(word[:40])
            raise DataError(
                f"expected finite numbers after {place}; correct or remove it",
                path=path,
                line=None if isinstance(numbers, np.ndarray) else line,
            )
        found.setdefault(word, vector)  # of a word that comes again, the more frequent one, as in gensim
    return found, size


def coverage(
    path: Path, words: Iterable[str], counts: Mapping[str, int], *, lowercase: str, kind: str = "word"
) -> str:
    """How much of a training text has vectors in a file, with a warning and its likely cause if little.

    Args:
        path: the file, or the run.
        words: those that have vectors there.
    """
    found = counts.keys() & words
    alike = {word.lower() for word in words}
    total = max(1, sum(counts.values()))
    share = sum(counts[word] for word in found) / total
    anyhow = sum(count for word, count in counts.items() if word.lower() in alike) / total
    said = (
        f"word vectors: {path} has {len(found):,} of {plural(len(counts), 'word')} of the training text, "
        f"{share:.1%} of its tokens"
    )
    if share >= FEW:
        return said
    if anyhow > share + 0.1:
        value = "true" if any(word != word.lower() for word in counts) else "false"
        return f"{said}; warning: {anyhow:.1%} without regard to case, so set {lowercase}={value}"
    if kind not in ("word", "space"):
        return f"{said}; warning: the text is split into pieces of words, so set data.vocabulary.kind=word"
    return f"{said}; warning: too little to help; is it the right file, and of the text's language?"


def _entries(path: Path) -> Iterator[VectorEntry]:
    start = next(file_bytes(path))[:START]
    kind = kind_of_bytes(start)
    if kind is not None and kind.ending == ".ftz":
        raise DataError(
            f"expected word vectors, got {kind.name}; name the .vec file that fastText writes beside it",
            path=path,
        )
    return _read_binary(path) if _is_binary(path, start) else _read_text(path)


def _is_binary(path: Path, start: bytes) -> bool:
    """Whether numbers follow the first line as bytes, whatever the file is called."""
    head = _HEAD.match(start)
    named = ".bin" in path.suffixes
    if head is None:
        return named
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start[head.end() :])
    except UnicodeDecodeError:
        return named or b"\0" in start
    return b"\0" in start


def _read_text(path: Path) -> Iterator[VectorEntry]:
    lines = ((number, line) for number, line in enumerate(read_lines(path), 1) if not line.isspace() and line)
    first = list(islice(lines, _FIRST))
    head = first[0][1].split() if len(first) > 1 else []
    stated = 0
    if len(head) == 2 and all(cell.isdigit() for cell in head):
        first = first[1:]
        stated = int(head[0])
    # Words may contain spaces, so the size is the most frequent number of spaces; of two, the smaller.
    counts = Counter(_spaced(line).count(" ") for _, line in first)
    size = max(sorted(counts), key=lambda count: counts[count], default=0)
    if stated and int(head[1]) != size:
        if int(head[1]) not in counts:
            raise DataError(
                f"its first line says {int(head[1]):,} numbers for each word, got {size:,}; correct it, or "
                "fetch the file again",
                path=path,
            )
        size = int(head[1])
    given = 0
    for number, line in chain(first, lines):
        if line.count(" ") > _MOST:
            raise DataError(
                f"expected a word2vec or GloVe text file, got a line of more than {_MOST:,} numbers",
                path=path,
                line=number,
            )
        word, *numbers = _spaced(line).rsplit(" ", size)
        parts = word.split(" ")[1:] if " " in word else []
        more = [part for part in parts if is_number(part) and math.isfinite(float(part))]
        if len(numbers) != size or size < 1 or (more and len(more) == word.count(" ")):
            raise DataError(
                f"expected a word and {size or 'some'} numbers, got {len(numbers) + len(more)}; "
                "give a text file of word2vec or GloVe",
                path=path,
                line=number,
            )
        given += 1
        yield VectorEntry(word, numbers, number)
    if given < stated:
        told = f"{path}: its first line says {stated:,} words, got {given:,}"
        warnings.warn(f"{told}; fetch it again if you did not shorten it", DataWarning, stacklevel=1)


def _spaced(line: str) -> str:
    """A line with a space between its cells, and none at its end."""
    return (line.replace("\t", " ") if "\t" in line else line).rstrip(" ")


def _read_binary(path: Path) -> Iterator[VectorEntry]:
    data = b"".join(file_bytes(path))
    head = _HEAD.match(data)
    count, size = (int(number) for number in head.groups()) if head else (0, 0)
    if head is None or not 0 < size < _MOST:
        raise DataError(
            "expected a first line with the number of words and the size of a vector; "
            "give a binary file of word2vec, or name a text file .txt",
            path=path,
        )
    at = head.end()
    for number in range(1, count + 1):
        space = data.find(b" ", at)
        end = space + 1 + 4 * size
        if space < 0 or end > len(data):
            raise DataError(
                f"ends in word {number:,} of {count:,}; the file is damaged or incomplete", path=path
            )
        word = data[at:space].lstrip(b"\n").decode("utf-8", "replace")
        yield VectorEntry(word, np.frombuffer(data, "<f4", size, space + 1), number)
        at = end


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """Write vectors atomically: .bin in word2vec's binary format, .glove as GloVe text, others word2vec text.

    Args:
        words: [N], without white space.
        vectors: [N, D].

    Raises:
        DataError: a word contains white space, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "vectors.txt"
        ...     write_vectors(path, ["cat", "dog"], np.eye(2, dtype=np.float32))
        ...     sorted(read_vectors(path)[0])
        ['cat', 'dog']
    """
    wrong = next((word for word in words if not word or _GAP.search(word)), None)
    if wrong is not None:
        raise DataError(
            f"the word {wrong!r} is empty or contains white space, which no reader accepts", path=path
        )
    with files.refusals(path), files.replacing(path) as file:
        for some in _bytes(path, words, vectors.astype("<f4")):
            file.write(some)


def _bytes(path: Path, words: Sequence[str], vectors: np.ndarray) -> Iterator[bytes]:
    if path.suffix != ".glove":
        yield f"{len(words)} {vectors.shape[1]}\n".encode()
    for word, vector in zip(words, vectors, strict=True):
        if path.suffix == ".bin":
            yield word.encode() + b" " + vector.tobytes() + b"\n"
        else:
            yield f"{word} {' '.join(f'{number:.9g}' for number in vector.tolist())}\n".encode()


class WordPair(NamedTuple):
    """Two words and their similarity as judged by people."""

    first: str
    second: str
    score: float


class Analogy(NamedTuple):
    """a is to b as c is to d."""

    words: tuple[str, str, str, str]
    section: str


class Questions(NamedTuple):
    """The contents of a file; one of the lists is empty."""

    pairs: list[WordPair]
    analogies: list[Analogy]


def read_questions(path: Path) -> Questions:
    """Read pairs or analogies; empty lines and lines that begin with # are skipped."""
    found = Questions([], [])
    section = path.name
    for number, line in enumerate(read_lines(path), 1):
        cells = [cell.strip() for cell in line.split("\t" if "\t" in line else None)]
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(":"):
            section = line[1:].strip()
        elif len(cells) == 3 and is_number(cells[2]) and isfinite(float(cells[2])) and not found.analogies:
            found.pairs.append(WordPair(cells[0], cells[1], float(cells[2])))
        elif len(cells) == 4 and not found.pairs:
            found.analogies.append(Analogy((cells[0], cells[1], cells[2], cells[3]), section))
        else:
            need = "two words and a finite number" if found.pairs else "four words"
            if not found.pairs and not found.analogies:
                need = "two words and a finite number, or four words"
            raise DataError(
                f"expected {need}, got {plural(len(cells), 'column')} "
                f"({line[:40]!r}); correct or remove the line",
                path=path,
                line=number,
            )
    if not found.pairs and not found.analogies:
        raise DataError("expected word pairs or analogies, got none", path=path)
    return found
