"""Tagged text of other forms than CoNLL-U: several columns on each line, as in CoNLL-2003, or word/TAG.

A file's first lines tell its form, as none of them says it. Read next: conllu.py, which reads all forms.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from weft.data.lines import each_line
from weft.data.tables import is_table
from weft.errors import DataError

SAMPLE = 2_000
"""Lines that are examined."""

START = "-DOCSTART-"
"""Begins a document in files of CoNLL-2003, as a sentence of its own."""

FEW = 3
"""Fewer words than this do not tell a form."""

_TAG = re.compile(r"[^a-z\s]+|[BIESLUM]-\S+")
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_MARKS = re.compile(r"[^\w-]+")  # punctuation: the tag of a few words, but the end of most sentences


class TaggedForm(NamedTuple):
    """How the words and tags of a file are written."""

    separator: str
    """Of the columns: a tab, or a space for any white space; or of a word and its tag: / or _."""

    width: int = 0
    """Columns of a line; 0 if a line is a sentence of words with their tags."""

    def place(self, column: str) -> int | None:
        """The index of a named column: pos is the second, chunk the third, ner the last."""
        if self.width == 2:
            return 1
        return {"pos": 1, "chunk": 2, "ner": self.width - 1}.get(column)

    def cells(self, line: str) -> list[str]:
        """The columns of a line."""
        return line.split("\t") if self.separator == "\t" else line.split()


def form_of(file: str | Path | BinaryIO) -> TaggedForm | None:
    """The form of a file; None for CoNLL-U, word TAB tag, plain text and streams that cannot be rewound.

    Raises:
        DataError: the file cannot be read.
    """
    if isinstance(file, str | Path):
        return form_of_lines(_first(each_line(file)))
    if not file.seekable():
        return None
    start = file.tell()
    try:
        return form_of_lines(_first(each_line(file)))
    finally:
        file.seek(start)


def holds_tags(path: Path) -> bool:
    """Whether a file has one of these forms."""
    try:
        return not is_table(path) and form_of(path) is not None
    except DataError:
        return False


def form_of_lines(lines: Sequence[str]) -> TaggedForm | None:
    """The form of these first lines of a file.

    Example:
        >>> form_of_lines(["-DOCSTART- -X- -X- O", "", "EU NNP B-NP B-ORG", "rejects VBZ B-VP O"])
        TaggedForm(separator=' ', width=4)
        >>> form_of_lines(["The/DT dog/NN barks/VBZ ./."]), form_of_lines(["and/or two", "more words"])
        (TaggedForm(separator='/', width=0), None)
    """
    filled = [line for line in lines if line.strip() and not line.startswith(START)]
    if not filled:
        return None
    if any("\t" in line for line in filled):
        rows = [line.split("\t") for line in filled]
        fits = len({len(row) for row in rows}) == 1 and 3 <= len(rows[0]) <= 9
        numbered = all(_NUMBER.fullmatch(row[0]) for row in rows)
        return TaggedForm("\t", len(rows[0])) if fits and not numbered else None
    words = [line.split() for line in filled]
    for separator in "/_":
        if _joined(words, separator):
            return TaggedForm(separator)
    width = len(words[0])
    if width < 2 or any(len(row) != width for row in words):
        return None
    starts = any(line.startswith(START) for line in lines)
    return TaggedForm(" ", width) if starts or _in_columns(words, lines) else None


def _joined(lines: Iterable[Sequence[str]], separator: str) -> bool:
    """Whether every word has a tag behind a separator; tags look so, or are fewer than words."""
    parts = [word.rpartition(separator) for line in lines for word in line]
    tags = {tag for _, _, tag in parts}
    told = len(tags) < len(parts) or all(map(_TAG.fullmatch, tags))
    return told and len(parts) >= FEW and all(word and tag for word, _, tag in parts)


def _in_columns(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> bool:
    """Whether the last words of the lines are tags: they look so, or are few and in blocks of lines."""
    last = [row[-1] for row in rows]
    if sum(bool(_MARKS.fullmatch(tag)) for tag in last) > len(last) / 2:
        return False
    shown = all(map(_TAG.fullmatch, last)) and not all(_TAG.fullmatch(row[0]) for row in rows)
    shown = shown and any(tag != tag.lower() for tag in last)  # numbers also end sentences
    blocks = sum(not line.strip() for line in lines)
    repeated = len(set(last)) <= len(last) / 3 and 0 < blocks <= len(rows) / 2
    return len(rows) >= FEW and (shown or repeated)


def _first(lines: Iterable[str | DataError]) -> list[str]:
    return [line for line in islice(lines, SAMPLE) if isinstance(line, str)]
