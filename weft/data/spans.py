"""Tagged sentences in JSON records, as annotation tools and Hugging Face write them.

`tokens` beside `tags` (Hugging Face), or a text and spans of its characters (doccano, Prodigy, spaCy, Label
Studio), whose words become B-NAME and I-NAME. Read next: conllu.py, which reads them beside other forms.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.data.lines import read_lines
from weft.data.tables import RECORDS, has_half, kind_of
from weft.errors import DataError
from weft.words import spans

TAGS = "ner_tags", "tags", "pos_tags", "upos", "labels", "ner"
SPANS = "spans", "label", "labels", "entities"
BEGIN, END, NAME = (
    ("start", "start_offset", "begin"),
    ("end", "end_offset"),
    ("label", "labels", "name"),
)

Block = tuple[int, list[str]]  # the line of a sentence, and a line WORD TAB TAG for each word


def holds_spans(path: Path) -> bool:
    """Whether the first record of a file is a tagged sentence."""
    if kind_of(path) not in RECORDS or not path.is_file():
        return False
    try:
        first = next(_records(path), None)
    except DataError:
        return False
    try:
        return first is not None and _tagged(first[1]) is not None
    except DataError:  # a sentence with a fault
        return True


def tagged_records(path: Path) -> Iterator[Block | DataError]:
    """The sentences of a file, or an error instead of one that cannot be read."""
    for number, record, text in _records(path):
        _check_whole(record, text, path, number)
        try:
            found = _tagged(record)
            if found is None:
                raise DataError(
                    "expected tokens and tags, or a text and spans, got neither; see other records"
                )
        except DataError as error:
            yield error.at(path, number)
            continue
        if found and not (isinstance(record, dict) and record.get("answer") in ("reject", "ignore")):
            yield number, [f"{word}\t{tag}" for word, tag in found]


def _records(path: Path) -> Iterator[tuple[int, Any, str]]:
    """The lines of the records of a file, or their numbers in a list; the records, and as text."""
    if kind_of(path) == ".json":
        text = "\n".join(read_lines(path))
        with suppress(ValueError, RecursionError):  # else a record on each line, in spite of the name
            found = json.loads(text)
            if isinstance(found, dict) and isinstance(found.get("annotations"), list) and "classes" in found:
                found = [one for one in found["annotations"] if one]  # of an annotation page for spaCy
            records = found if isinstance(found, list) else [found]
            yield from ((number, one, json.dumps(one)) for number, one in enumerate(records, 1))
            return
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(
                "expected a record as JSON, got other text; correct it", path=path, line=number
            ) from None
        yield number, record, line


def _check_whole(record: Any, text: str, path: Path, number: int) -> None:
    if has_half(text, record):
        what = "expected whole characters, got half a surrogate pair, such as \\ud83d; complete it"
        raise DataError(what, path=path, line=number)


def _tagged(record: Any) -> list[tuple[str, str]] | None:
    """The words of a record with their tags; None if it has none."""
    if isinstance(record, list) and len(record) == 2 and isinstance(record[1], dict):  # of spaCy
        record = {"text": record[0], **record[1]}
    if not isinstance(record, dict):
        return None
    tokens = record.get("tokens", record.get("words"))
    tags = next((record[name] for name in TAGS if isinstance(record.get(name), list)), None)
    if isinstance(tokens, list) and tags is not None and all(isinstance(one, str) for one in tokens):
        return _beside(tokens, tags)
    if isinstance(record.get("data"), dict):  # of Label Studio
        text = next((one for one in record["data"].values() if isinstance(one, str)), None)
        given = [one for one in record.get("annotations") or [] if not one.get("was_cancelled")]
        if "annotations" in record and not given:  # not labelled yet
            return []
        results = [one for each in given for one in each.get("result") or []]
        marks: Any = [one["value"] for one in results if isinstance(one.get("value"), dict)]
        return _words(text, marks) if text is not None and (marks or "annotations" in record) else None
    text = record.get("text")
    marks = next((record[name] for name in SPANS if isinstance(record.get(name), list)), None)
    return _words(text, marks) if isinstance(text, str) and marks is not None else None


def _beside(tokens: Sequence[str], tags: Sequence[Any]) -> list[tuple[str, str]]:
    if len(tokens) != len(tags):
        raise DataError(
            f"expected a tag for each of {len(tokens)} words, got {len(tags)}; correct the record"
        )
    if any(not isinstance(tag, str) for tag in tags):
        raise DataError(
            "expected the names of tags, got numbers; write the names, which the data set has in "
            'features["ner_tags"].feature.names'
        )
    return [("_".join(word.split()) or "_", tag) for word, tag in zip(tokens, tags, strict=True)]


def _words(text: str, marks: Sequence[Any]) -> list[tuple[str, str]] | None:
    """The words of a text, those in a span with its name; the longer of two spans counts."""
    found = list[tuple[int, int, str]]()
    for mark in marks:
        one = _span(mark)
        if one is None:
            return None
        found.append(one)
    words = spans(text)
    found = _of_characters(text, found, words)
    for begin, end, _ in found:
        if not 0 <= begin < end <= len(text):
            raise DataError(
                f"expected a span inside the text, got {begin} to {end} of {len(text)}; correct it"
            )
    tags = ["O"] * len(words)
    for begin, end, name in sorted(found, key=lambda one: one[1] - one[0], reverse=True):
        inside = [n for n, (first, last) in enumerate(words) if first < end and begin < last]
        if all(tags[n] == "O" for n in inside):
            for place, n in enumerate(inside):
                tags[n] = f"{'I' if place else 'B'}-{name}"
    return [(text[begin:end], tag) for (begin, end), tag in zip(words, tags, strict=True)]


def _of_characters(
    text: str, found: list[tuple[int, int, str]], words: Sequence[tuple[int, int]]
) -> list[tuple[int, int, str]]:
    """Spans as places of characters: a browser counts two for an emoji, which shows at the edges of words."""
    if text.isascii() or max(text) <= "\uffff":
        return found
    units = [0]
    for sign in text:
        units.append(units[-1] + 1 + (sign > "\uffff"))
    place = {unit: number for number, unit in enumerate(units)}
    others = [(place.get(begin, -1), place.get(end, -1), name) for begin, end, name in found]
    first, last = {begin for begin, _ in words}, {end for _, end in words}

    def fits(marks: Sequence[tuple[int, int, str]]) -> bool:
        return all(begin in first and end in last for begin, end, _ in marks)

    return others if fits(others) and not fits(found) else found


def _span(mark: Any) -> tuple[int, int, str] | None:
    """Begin, end and name of a span."""
    if isinstance(mark, list) and len(mark) == 3:
        values = mark
    elif isinstance(mark, Mapping):
        values = [next((mark[key] for key in keys if key in mark), None) for keys in (BEGIN, END, NAME)]
    else:
        return None
    begin, end, name = values
    name = name[0] if isinstance(name, list) and name else name
    fits = isinstance(begin, int) and isinstance(end, int) and isinstance(name, str)
    return (begin, end, "_".join(name.split())) if fits else None
