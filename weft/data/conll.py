"""Tagged text of other forms than CoNLL-U: several columns on each line, as in CoNLL-2003, or word/TAG.

A file's first lines tell its form, as none of them says it and no library guesses it. Read next: conllu.py,
which reads all forms.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from weft.data.held import STREAM, name_of
from weft.data.lines import each_line
from weft.data.spans import holds_spans
from weft.data.tables import header_of, is_table, kind_of
from weft.errors import DataError

SAMPLE = 2_000  # lines that are examined

START = "-DOCSTART-"  # begins a document in files of CoNLL-2003, as a sentence of its own

MOST = 0.9
"""Share of lines with the same number of columns that tells the form of a file with wrong lines."""

FEW = 3  # fewer words than this do not tell a form

_SPAN = re.compile(r"O|[BIESLUMW]-\S+", re.IGNORECASE)  # the tag of a name or of what is outside
_TAG = re.compile(r"[^a-z\s]+|[BIESLUMW]-\S+")
_PARTS = re.compile(
    "ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X"  # UD
    "|CC|CD|DT|EX|FW|IN|JJ[RS]?|LS|MD|NNP?S?|PDT|POS|PRP[$]?|RB[RS]?|RP|TO|UH|VB[DGNPZ]?|WDT|WP[$]?|WRB"
    "|-[LR]RB-|[#$,.:()\"]|``|''|HYPH|NFP"  # Penn
)
_TAG_NAME = re.compile(r"tags?|ner(_tags?)?|label|pos", re.IGNORECASE)  # of a column
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_COMMENT = re.compile(r"#\s*[a-z][\w-]*(\s|=|:|$)")
_GAP = re.compile(r"[ \t]+")  # no-break spaces are part of a word
_MARKS = re.compile(r"[^\w-]+")  # punctuation: the tag of a few words, but the end of most sentences


class TaggedForm(NamedTuple):
    """How the words and tags of a file are written."""

    separator: str  # of the columns: a tab, or a space for any white space; or of a word and its tag: / or _
    width: int = 0  # columns of a line; 0 if a line is a sentence of words with their tags
    word: int = 0  # the column of the word: 1 in files such as GermEval's, which number the words

    def place(self, column: str) -> int | None:
        """The index of a named column: pos is the second, chunk the third, ner the last.

        In files that number the words, ner is the first behind the word.
        """
        if self.word:
            return {"ner": self.word + 1}.get(column)
        if self.width == 2:
            return 1
        return {"pos": 1, "chunk": 2, "ner": self.width - 1}.get(column)

    def cells(self, line: str) -> list[str]:
        """The columns of a line."""
        return line.split("\t") if self.separator == "\t" else _cells(line)

    def words(self, lines: Sequence[str]) -> list[int]:
        """The indices of the lines of a sentence that are words: not a document's start, nor a comment."""
        return words_among(lines, [len(self.cells(line)) for line in lines], self.width)


def words_among(lines: Sequence[str], widths: Sequence[int], width: int) -> list[int]:
    """The indices of the lines of a sentence that are words, if words have a number of columns.

    Lines before the first word that begin with # and a space, or with # and a name, are comments.
    """
    found = list[int]()
    for place, (line, count) in enumerate(zip(lines, widths, strict=True)):
        comment = line.startswith("# ") or (_COMMENT.match(line) and (count != width or width > 2))
        if not (comment and not found) and not line.startswith(START):
            found.append(place)
    return found


def form_of(path: Path) -> TaggedForm | None:
    """The form of a file of tagged words; None for CoNLL-U, word TAB tag and plain text."""
    return None if holds_spans(Path(path)) else opened(path).form


class InputReading(NamedTuple):
    """How the lines of an input are read."""

    lines: Iterator[str | DataError]
    kind: Literal["sentences", "words", "columns", "tabs"]
    form: TaggedForm | None  # of columns, or of words with their tags
    note: str  # for the user; empty where no other reading was possible


def opened(file: str | Path | BinaryIO) -> InputReading:
    """The lines of a file or stream, and how they are read."""
    rest = _no_table(Path(file) if isinstance(file, str) else file)
    head = list(islice(rest, SAMPLE))
    lines = [line for line in head if isinstance(line, str)]
    _check_tabs(lines, str(file))
    form, filled = form_of_lines(lines), _filled(lines)
    plain = not any("\t" in line for line in filled) and any(" " in line.strip() for line in filled)
    return InputReading(chain(head, rest), "sentences" if plain and form is None else "tabs", form, "")


def _no_table(source: Path | BinaryIO) -> Iterator[str | DataError]:
    """The lines of a file or stream, unless it is a table with a word in each row."""
    if isinstance(source, Path) and (columns := columns_of_words(source)):
        raise DataError(_converted(source, *columns), path=source)
    return each_line(source)


def _check_tabs(lines: Sequence[str], file: str) -> None:
    """Refuse CoNLL-U with spaces instead of tabs."""
    if _spaced(lines):
        told = "CoNLL-U with spaces between its columns, expected tabs; convert it: "
        told += f"sed -E '/^#/!s/ +/\\t/g' {shlex.quote(file)} > FILE.conllu"
        raise DataError(told, path=file)


ReadAs = Literal["auto", "sentences", "words", "columns"]
"""How lines are read: a sentence or a word on each, or columns; auto decides by the first lines."""

EMPTY_TAGS = ("_", "-", "-X-", "?")  # the cells of a column of tags without any


def reading_of(
    source: Path | BinaryIO,
    trained: TaggedForm | None,
    tags: Container[str],
    column: str,
    read_as: ReadAs = "auto",
) -> InputReading:
    """How the lines of a file, a pipe or a terminal are read, by those at their beginning.

    A line with a tab has columns. Other lines are columns only if all of them have those of the training data
    (`trained`; None for CoNLL-U, word TAB tag, and runs that do not say it), with its tags in one of them;
    they are words if each of them is one. Everything else is sentences.
    """
    name = name_of(source)
    rest = _no_table(source)
    if read_as == "auto" and not isinstance(source, Path) and source.isatty():
        read_as = "sentences"
    if read_as in ("sentences", "words"):
        return InputReading(rest, read_as, None, "")
    head, filled, begins, words = list[str | DataError](), list[str](), True, True
    for line in islice(rest, SAMPLE):
        head.append(line)
        if not isinstance(line, DataError):
            is_word, begins = _is_word(line, begins)
            filled += [line] * is_word
            words = words and (not is_word or ("\t" not in line and len(_cells(line)) == 1))
            if not words and (begins or not _may_be_columns(line, trained, tags, column)):
                break
    found, lines = [line for line in head if isinstance(line, str)], chain(head, rest)
    _check_tabs(found, name)
    form = form_of_lines(found)
    if any("\t" in line for line in filled):
        return InputReading(lines, "tabs", form, "")
    if read_as == "columns":
        form = form or _same_width([_cells(line) for line in filled])
        if form is None:
            raise DataError("expected lines of the same number of columns; pass another --read-as", path=name)
        return InputReading(lines, "columns", form, "")
    note = "{}: read as {}; for a sentence on each line pass --read-as sentences"
    if filled and words and (trained is None or trained.width):
        return InputReading(
            lines, "words", None, note.format(name, "a word on each line") * (len(filled) > 1)
        )
    form = trained or form
    if form is not None and filled and all(_fits(line, form, tags, column) for line in filled):
        what = f"{form.width} columns" if form.width else f"words with their tags (WORD{form.separator}TAG)"
        return InputReading(lines, "columns", form, note.format(name, what))
    return InputReading(lines, "sentences", None, "")


def _may_be_columns(line: str, trained: TaggedForm | None, tags: Container[str], column: str) -> bool:
    """Whether a line has a tab, or the columns or the tagged words of a form."""
    count = len(_cells(line))
    forms = [trained] if trained else [TaggedForm("/"), TaggedForm("_"), TaggedForm(" ", count)]
    return "\t" in line or any(_fits(line, form, tags, column) for form in forms)


def _fits(line: str, form: TaggedForm, tags: Container[str], column: str) -> bool:
    """Whether a line has the columns of a form with a known tag, or words with known tags."""
    cells = form.cells(line)
    if not form.width:
        parts = [word.rpartition(form.separator) for word in _cells(line)]
        return all(word and tag in tags for word, _, tag in parts)
    place = form.place(column)
    return (
        len(cells) == form.width
        and place is not None
        and (cells[place] in tags or cells[place] in EMPTY_TAGS)
    )


def _same_width(rows: Sequence[Sequence[str]]) -> TaggedForm | None:
    """Columns separated by spaces, if all lines have as many."""
    widths = {len(row) for row in rows}
    return TaggedForm(" ", widths.pop()) if len(widths) == 1 and min(widths) > 1 else None


def holds_tags(path: Path) -> bool:
    """Whether a file has one of these forms, or word TAB tag with the usual tags."""
    try:
        if is_table(path):
            if columns_of_words(path) is not None or holds_spans(path):
                return True
            form = form_of(path) if kind_of(path) == ".tsv" else None
            return _holds_word_and_tag(path) or (form is not None and form.word > 0)
        return form_of(path) is not None or _holds_word_and_tag(path)
    except DataError:
        return False


def _holds_word_and_tag(path: Path) -> bool:
    """Whether nearly all lines are word TAB tag, with tags of names or the usual ones of parts of speech."""
    lines = [line for line in islice(each_line(path), SAMPLE) if isinstance(line, str)]
    rows = [line.split("\t") for line in lines if line.strip() and not line.startswith(("# ", START))]
    tags = [row[1] for row in rows if len(row) == 2 and " " not in row[0]]
    known = sum(bool(_SPAN.fullmatch(tag) or _PARTS.fullmatch(tag)) for tag in tags)
    return len(tags) >= FEW and known > MOST * len(rows)


def columns_of_words(path: Path) -> tuple[str, str, str] | None:
    """The columns of sentence, word and tag of a table with a word in each row, such as Kaggle's ner.csv."""
    return names_words(header_of(path) if is_table(path) else ())


def names_words(names: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of sentence, word and tag of a header that has them."""
    sentence = next((one for one in names if "sentence" in one.lower()), None)
    word = next((one for one in names if one.lower() in ("word", "token")), None)
    tag = next((one for one in reversed(names) if _TAG_NAME.fullmatch(one)), None)
    return (sentence, word, tag) if sentence and word and tag else None


def _converted(path: Path, sentence: str, word: str, tag: str) -> str:
    """What to do with such a table."""
    try:
        encoding = path.read_bytes().decode() and "utf-8"
    except UnicodeDecodeError:
        encoding = "latin-1"
    name, here, there = (f"r[{json.dumps(one, ensure_ascii=False)}]" for one in (sentence, word, tag))
    row = f"chr(10)*bool(s and {name} and {name}!=s)+{here}+chr(9)+{there}"
    received = name_of(path) == STREAM
    file = "0" if received else json.dumps(str(path), ensure_ascii=False)
    opened = f'open({file}, encoding="{encoding}")'
    code = f'import csv; s=""; [print({row}) or (s:={name} or s) for r in csv.DictReader({opened})]'
    convert = f"python3 -c {shlex.quote(code)} > "
    convert += "words.conll" if received else shlex.quote(str(path.with_suffix(".conll")))
    what = "a table with a word in each row, expected word TAB tag and an empty line after a sentence"
    return f"{what}; convert it: {convert}"


def form_of_lines(lines: Sequence[str]) -> TaggedForm | None:
    """The form of these first lines of a file."""
    filled = _filled(lines)
    if not filled:
        return None
    if any("\t" in line for line in filled):
        rows = [line.split("\t") for line in filled]
        fits = len({len(row) for row in rows}) == 1 and 3 <= len(rows[0]) <= 9
        numbered = all(_NUMBER.fullmatch(row[0]) for row in rows)
        if fits and numbered:  # 1 TAB word TAB tag TAB inner tag, as GermEval
            spans = all(_SPAN.fullmatch(row[2]) for row in rows)
            return TaggedForm("\t", len(rows[0]), 1) if spans else None
        return TaggedForm("\t", len(rows[0])) if fits else None
    words = [_cells(line) for line in filled]
    for separator in "/_":
        if _joined(words, separator):
            return TaggedForm(separator)
    width, usual = Counter(map(len, words)).most_common(1)[0]
    if width < 2 or usual < MOST * len(words):
        return None
    if usual < len(words):  # a wrong line, if all others have the tags of names
        last = [row[-1] for row in words if len(row) == width]
        named = all(map(_SPAN.fullmatch, last)) and any("-" in tag for tag in last)
        return TaggedForm(" ", width) if named else None
    starts = any(line.startswith(START) for line in lines)
    return TaggedForm(" ", width) if starts or _in_columns(words, lines) else None


def _joined(lines: Iterable[Sequence[str]], separator: str) -> bool:
    """Whether every word has a tag behind a separator; tags look so, or are fewer than words."""
    parts = [word.rpartition(separator) for line in lines for word in line]
    tags = {tag for _, _, tag in parts}
    told = len(tags) < len(parts) or all(map(_TAG.fullmatch, tags))
    return told and len(parts) >= FEW and all(word and tag for word, _, tag in parts)


def _in_columns(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> bool:
    """Whether the last words of the lines are tags: known ones, or few and in blocks of lines."""
    last = [row[-1] for row in rows]
    if len(rows) >= FEW and all(map(_SPAN.fullmatch, last)):
        return True
    if sum(bool(_MARKS.fullmatch(tag)) for tag in last) > len(last) / 2:
        return False
    known = all(map(_PARTS.fullmatch, last)) and not all(_PARTS.fullmatch(row[0]) for row in rows)
    blocks = sum(not line.strip() for line in lines)
    repeated = len(set(last)) <= len(last) / 3 and 0 < blocks <= len(rows) / 2
    return len(rows) >= FEW and (known or repeated)


def _filled(lines: Sequence[str]) -> list[str]:
    """The lines that are not blank, without starts of documents and comments before a sentence."""
    found, begins = list[str](), True
    for line in lines:
        is_word, begins = _is_word(line, begins)
        found += [line] * is_word
    return found


def _is_word(line: str, begins: bool) -> tuple[bool, bool]:
    """Whether a line is part of a sentence, and whether the next one may be a comment before a sentence."""
    begins = bool(begins and _COMMENT.match(line)) or not line.strip() or line.startswith(START)
    return not begins, begins


def _cells(line: str) -> list[str]:
    return _GAP.split(line.strip(" \t"))


def _spaced(lines: Sequence[str]) -> bool:
    """Whether these are lines of CoNLL-U with spaces instead of tabs."""
    rows = [_cells(line) for line in lines if line.strip() and not line.startswith("#")]
    wide = len(rows) > 1 and all(len(row) == 10 and _NUMBER.fullmatch(row[0]) for row in rows)
    return wide and rows[0][0][0] == "1" and not any("\t" in line for line in lines)
