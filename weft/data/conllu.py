"""Tagged sentences: CoNLL-U with its ten columns, one word and its tag per line, or a form of conll.py.

A sentence keeps its original lines, so comments, multiword tokens (3-4), empty tokens (8.1) and all other
columns are written back byte for byte. Read next: conll.py, lines.py.

CoNLL-U is defined at universaldependencies.org/format.html.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from weft.data.conll import InputReading, TaggedForm, opened, words_among
from weft.data.spans import holds_spans, tagged_records
from weft.errors import DataError
from weft.wording import plural

Column = Literal["upos", "xpos", "feats", "pos", "chunk", "ner"]
"""A column of tags; the last three are those of CoNLL-2003 and its like, see conll.py."""

COLUMNS: dict[Column, int] = {"upos": 3, "xpos": 4, "feats": 5}
WIDTH = 10

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}")


class ConlluSentence(NamedTuple):
    """The lines of a sentence and its words.

    Example:
        >>> import io
        >>> row = "1 Open open VERB _ _ 0 root _ _".replace(" ", chr(9))
        >>> [sentence] = read_sentences(io.BytesIO(row.encode()))
        >>> sentence.forms, sentence.tags, sentence.first
        (['Open'], ['VERB'], 1)
    """

    lines: list[str]  # of the file, also comments
    first: int  # number of the first line in its file
    rows: list[int]  # indices of the lines that are words
    forms: list[str]  # [T] words
    tags: list[str] | None  # [T], or None if untagged
    form: TaggedForm | None = None  # of the file, if it has one of conll.py

    def tagged(self, tags: Sequence[str], column: Column) -> list[str]:
        r"""The lines with the given tags in a column; for plain text, lines of word TAB tag.

        Args:
            tags: [T] one for each word.
            column: the column to replace.

        Example:
            >>> import io
            >>> [sentence] = read_sentences(io.BytesIO(b"1\tHi\t_\t_\t_\t_\t0\troot\t_\t_"))
            >>> sentence.tagged(["INTJ"], "upos")
            ['1\tHi\t_\tINTJ\t_\t_\t0\troot\t_\t_']
        """
        lines = list(self.lines)
        for row, form, tag in zip(self.rows, self.forms, tags, strict=True):
            cells = lines[row].split("\t")
            if self.form is not None and self.form.width:
                parts = re.split(
                    r"(\t)" if self.form.separator == "\t" else r"([ \t]+)", lines[row].strip(" ")
                )
                parts[2 * (self.form.place(column) or 0)] = tag
                lines[row] = "".join(parts)
            elif self.form is None and len(cells) == WIDTH:
                cells[COLUMNS[column]] = tag
                lines[row] = "\t".join(cells)
            else:
                lines[row] = f"{form}\t{tag}"
        return lines


def read_sentences(file: str | Path | BinaryIO, *, column: Column = "upos") -> Iterator[ConlluSentence]:
    """Read the sentences of a file lazily.

    Args:
        file: see read_lines.
        column: the column with the tags.

    Raises:
        DataError: a line does not fit the form of the file; names file and line.

    Example:
        >>> import io
        >>> row = "1 Open open VERB _ _ 0 root _ _".replace(" ", chr(9))
        >>> [(one.forms, one.tags) for one in read_sentences(io.BytesIO(row.encode()))]
        [(['Open'], ['VERB'])]
    """
    for one in each_sentence(file, column=column):
        if isinstance(one, DataError):
            raise one
        yield one


def each_sentence(
    file: str | Path | BinaryIO, *, column: Column = "upos"
) -> Iterator[ConlluSentence | DataError]:
    """Like `read_sentences`, with an error instead of a sentence that cannot be read."""
    name = str(file) if isinstance(file, str | Path) else str(getattr(file, "name", "input"))
    if isinstance(file, str | Path) and holds_spans(Path(file)):
        return _records(Path(file))
    return each_input(opened(file), name, column=column)


def _records(path: Path) -> Iterator[ConlluSentence | DataError]:
    """The sentences of a file of records."""
    for one in tagged_records(path):
        if isinstance(one, DataError):
            yield one
        else:
            number, lines = one
            forms, tags = zip(*(line.split("\t") for line in lines), strict=True)
            yield ConlluSentence(lines, number, [*range(len(lines))], [*forms], [*tags])


def each_input(
    reading: InputReading, name: str, *, column: Column = "upos"
) -> Iterator[ConlluSentence | DataError]:
    """The sentences of a file or an input to tag, read as conll.py says."""
    if reading.form is not None:
        return _formed(reading.lines, reading.form, column, name)
    if reading.kind == "tabs":
        return _each(reading.lines, column, name)
    return _plain(reading.lines, words=reading.kind == "words")


def _blocks(lines: Iterable[str | DataError]) -> Iterator[tuple[int, list[str]] | DataError]:
    """The lines between empty ones, with the number of the first; one error for those with bad lines."""
    held, wrong = list[str](), None
    for number, line in enumerate(chain(lines, [""]), 1):
        if isinstance(line, DataError):
            wrong = wrong or line
        elif line.strip():
            held.append(line)
        elif held or wrong:
            yield wrong or (number - len(held), held)
            held, wrong = [], None


def _plain(lines: Iterable[str | DataError], *, words: bool) -> Iterator[ConlluSentence | DataError]:
    """A sentence on each line; or a word, and an empty line after each sentence."""
    for block in _blocks(lines) if words else ():
        yield block if isinstance(block, DataError) else _untagged([*map(str.strip, block[1])], block[0])
    for number, line in enumerate(() if words else lines, 1):
        if isinstance(line, DataError):
            yield line
        elif found := line.split():
            yield _untagged(found, number)


def _untagged(words: list[str], number: int) -> ConlluSentence:
    return ConlluSentence(words, number, list(range(len(words))), words, None)


def _each(
    lines: Iterable[str | DataError], column: Column, name: str
) -> Iterator[ConlluSentence | DataError]:
    """The sentences of CoNLL-U, of word TAB tag, or of a word on each line."""
    width = 0
    for one in _blocks(lines):
        if isinstance(one, DataError):
            yield one
            continue
        try:
            sentence, width = _sentence(one[1], one[0], width, column, name)
            yield sentence
        except DataError as error:
            yield error


def _formed(
    lines: Iterable[str | DataError], form: TaggedForm, column: Column, name: str
) -> Iterator[ConlluSentence | DataError]:
    """The sentences of a file in a form of conll.py."""
    place = form.place(column)
    if form.width and place is None:
        told = (
            f"expected CoNLL-U for column {column}, got {form.width} columns, as in CoNLL-2003; choose ner, "
        )
        told += "chunk or pos (data.column, --column)"
        yield DataError(told, path=name, line=1)
        return
    for one in _blocks(lines) if form.width else ():
        yield one if isinstance(one, DataError) else _columned(one[1], one[0], form, place or 0, name)
    for number, line in enumerate(() if form.width else lines, 1):
        if isinstance(line, DataError):
            yield line
        elif line.strip():
            yield _joined(line, number, form, name)


def _columned(
    lines: list[str], first: int, form: TaggedForm, place: int, name: str
) -> ConlluSentence | DataError:
    """A sentence of lines with columns."""
    rows = form.words(lines)
    cells = [form.cells(lines[row]) for row in rows]
    tagged = any(one[place].strip() for one in cells if len(one) == form.width)
    for row, one in zip(rows, cells, strict=True):
        told = f"expected {form.width} columns, got {len(one)}" if len(one) != form.width else ""
        if not told and not (one[form.word].strip() and (one[place].strip() or not tagged)):
            told = "expected a word and its tag, got an empty column"
        if told:
            return DataError(f"{told}; correct the line", path=name, line=first + row)
    tags = [one[place] for one in cells] if tagged or not rows else None
    return ConlluSentence(lines, first, rows, [one[form.word] for one in cells], tags, form)


def _joined(line: str, number: int, form: TaggedForm, name: str) -> ConlluSentence | DataError:
    """A sentence of words with their tags."""
    parts = [word.rpartition(form.separator) for word in line.split()]
    for word, _, tag in parts:
        if not word or not tag:
            told = f"expected WORD{form.separator}TAG, got {word or tag!r}; correct the word"
            return DataError(told, path=name, line=number)
    words = [word for word, _, _ in parts]
    return ConlluSentence(words, number, list(range(len(words))), words, [tag for _, _, tag in parts], form)


STARTS = "newdoc", "newpar"
"""Comments that begin a document or a paragraph; the next sentences belong to it too."""


def grouped(
    sentences: Iterable[ConlluSentence], comment: str, name: str
) -> Iterator[tuple[str, ConlluSentence]]:
    """Sentences that have words, each with its group: the number of the last such comment, or its value."""
    number, first = 0, None
    for sentence in sentences:
        words = set(sentence.rows)
        comments = [line[1:].strip() for row, line in enumerate(sentence.lines) if row not in words]
        number += any(one.split(maxsplit=1)[:1] == [comment] for one in comments)
        group = str(number) if comment in STARTS else _value(comments, comment)
        if sentence.forms:
            first = first or sentence
            if not group:
                raise _ungrouped(f"# {comment} = ...", name, sentence)
            yield group, sentence
    if first and comment in STARTS and not number:
        raise _ungrouped(f"# {comment}", name, first)


def _value(comments: Iterable[str], key: str) -> str:
    pairs = (one.partition("=") for one in comments)
    return next((value.strip() for name, _, value in pairs if name.strip() == key), "")


def _ungrouped(need: str, name: str, sentence: ConlluSentence) -> DataError:
    told = f"expected the comment {need}, which data.group names, got none; add it, or remove data.group"
    return DataError(told, path=name, line=sentence.first)


def faults(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """The errors in the lines of one CoNLL-U sentence, as (line number, message)."""
    expected, covered = 1, 0
    for number, line in enumerate(lines, first):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != WIDTH:
            yield number, f"expected {WIDTH} columns (CoNLL-U), got {len(cells)}; correct or remove the line"
            continue
        if "" in cells:
            yield number, f"column {cells.index('') + 1} is empty; write _ where there is nothing"
        if _WORD.fullmatch(cells[0]):
            if int(cells[0]) != expected:
                yield number, f"expected word {expected}, got word {cells[0]}; number the words 1, 2, 3, ..."
            expected = int(cells[0]) + 1
        elif found := _RANGE.fullmatch(cells[0]):
            start, end = int(found[1]), int(found[2])
            if start != expected or end <= start or start <= covered:
                yield (
                    number,
                    f"expected range {cells[0]} to begin at word {expected}; put a range before "
                    "its first word",
                )
            covered = end
        elif not _EMPTY.fullmatch(cells[0]):
            yield number, f"expected a word number such as 7, 7-8 or 7.1, got {cells[0][:20]!r}"
    if expected <= covered:
        yield first + len(lines) - 1, f"the sentence ends before word {covered} of its last range"


def _sentence(
    lines: list[str], first: int, width: int, column: Column, name: str
) -> tuple[ConlluSentence, int]:
    """The sentence and the file's number of columns: 10, 2 or 1; 0 while unknown."""
    inside = [row for row, line in enumerate(lines) if not (line.startswith("#") and "\t" not in line)]
    if not inside:  # only comments
        return ConlluSentence(lines, first, [], [], None), width
    seen = max(line.count("\t") + 1 for line in lines)  # includes comments, which may contain tabs
    if width in (0, WIDTH) and (seen > 2 or width == WIDTH):
        for number, fault in faults(lines, first):
            raise DataError(f"{fault}", path=name, line=number)
        rows = [row for row in inside if _WORD.fullmatch(lines[row].split("\t")[0])]
        cells = [lines[row].split("\t") for row in rows]
        tags = [line[COLUMNS[column]] for line in cells]
        return ConlluSentence(lines, first, rows, [line[1] for line in cells], tags), WIDTH
    width = width or seen
    split = [line.split("\t") for line in lines]
    rows = list(range(len(lines)))  # here # may be a word
    if width == 2:
        rows = words_among(lines, [len(each) for each in split], width)
        split = [split[row] for row in rows]
    for row, each in zip(rows, split, strict=True):
        if len(each) != width or not each[0].strip():
            need = "word TAB tag" if width == 2 else "a word"
            found = _columns(each) if each[0].strip() else "no word"
            raise DataError(f"expected {need}, got {found}; correct the line", path=name, line=first + row)
    forms = [each[0].strip() for each in split]
    tags_ = [each[1].strip() for each in split] if width == 2 else None
    if tags_ and not any(tags_):
        tags_ = None
    elif tags_ and "" in tags_:
        line = first + rows[tags_.index("")]
        raise DataError("expected word TAB tag, got an empty tag; write one", path=name, line=line)
    return ConlluSentence(lines, first, rows, forms, tags_), width


def _columns(cells: Sequence[str]) -> str:
    return plural(len(cells), "column")
