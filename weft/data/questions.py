"""Read word similarity pairs and analogies.

tiger TAB cat TAB 7.35            also with spaces; WordSim-353, MEN, SimLex-999
: capital-common-countries     a heading, then four words per line: a is to b as c is to d
Athens Greece Baghdad Iraq
"""

from math import isfinite
from pathlib import Path
from typing import NamedTuple

from weft.data.lines import read_lines
from weft.data.tables import is_number
from weft.errors import DataError
from weft.wording import plural


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
