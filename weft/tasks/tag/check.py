"""Everything that is wrong with tagged text, each finding with its place.

Read next: ../../data/conllu.py, whose format is checked.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from weft.data.conll import form_of
from weft.data.conllu import COLUMNS, WIDTH, ConlluSentence, each_sentence, faults
from weft.data.lines import read_lines
from weft.data.report import COMMON, Finding, Report, placed
from weft.errors import DataError

MOST = 1000  # findings of a kind that are kept

WORDS = COMMON | {
    "unlabelled": "lines without one word and one tag",
    "tag": "words without a tag",
    "label": "tags that the first file does not have",
    "nothing": "sentences without a word",
    "again": "duplicate sentences in one file",
    "leak": "sentences that also occur in an earlier file",
}


def check_tags(files: Sequence[Path]) -> Report:
    """Check tagged text: CoNLL-U, columns as in CoNLL-2003, word TAB tag, or word/TAG.

    Args:
        files: to check; the others are compared with the one named train, or else with the first one.
    """
    findings: list[Finding] = []
    counts: dict[str, int] = {}
    lines: dict[str, int] = {}

    def add(finding: Finding) -> None:
        counts[finding.kind] = counts.get(finding.kind, 0) + 1
        if counts[finding.kind] <= MOST:
            findings.append(finding)

    known: dict[str, set[str]] = {}  # tags of the first file, by column
    sentences: dict[str, str] = {}
    ordered = sorted(files, key=lambda path: "train" not in path.name)
    first_file = ordered[0]
    for place, path in enumerate(ordered):
        seen: dict[str, dict[str, int]] = {}
        number = 0
        wide = False
        try:
            form = form_of(path)
            for one in each_sentence(path, column="ner") if form else ():
                number += 1 if isinstance(one, DataError) else len(one.lines)
                for finding in _findings_of_form(str(path), one, seen, sentences):
                    add(finding)
            for first, held in _blocks(read_lines(path)) if form is None else ():
                number = first + len(held) - 1
                wide = wide or any(len(line.split("\t")) > 2 for line in held)
                for finding in _findings(str(path), first, held, wide, seen, sentences):
                    add(finding)
        except DataError as error:
            add(placed(str(path), error, "bytes"))
        lines[str(path)] = number
        if place == 0:
            known = {column: set(tags) for column, tags in seen.items()}
            continue
        for column, tags in seen.items():
            for tag, line in tags.items():
                if known.get(column) and tag not in known[column]:
                    what = f"the {column} {tag!r} does not occur in {first_file}"
                    add(Finding(str(path), line, "label", f"{what}, so no tagger can learn it"))
    findings.sort(key=lambda found: (found.file, found.line))
    return Report(findings, counts, lines, WORDS)


def _findings_of_form(
    name: str,
    sentence: ConlluSentence | DataError,
    seen: dict[str, dict[str, int]],
    sentences: dict[str, str],
) -> Iterator[Finding]:
    """The findings in a sentence of a form of conll.py."""
    if isinstance(sentence, DataError):
        yield placed(name, sentence, "columns")
        return
    form = sentence.form
    assert form is not None
    for row, tag in zip(sentence.rows, sentence.tags or (), strict=True):
        number = sentence.first + (row if form.width else 0)
        if form.width <= 2:
            seen.setdefault("tag", {}).setdefault(tag, number)
        for column in ("pos", "chunk", "ner") if form.width > 2 else ():
            tag = form.cells(sentence.lines[row])[form.place(column) or 0]
            seen.setdefault(column, {}).setdefault(tag, number)
    yield from _repeated(name, sentence.first, sentence.forms, sentences)


def _repeated(name: str, first: int, words: Sequence[str], sentences: dict[str, str]) -> Iterator[Finding]:
    """A finding if a sentence of more than five words was seen before."""
    text = " ".join(words)
    if len(words) > 5:
        before = sentences.setdefault(text, f"{name}:{first}")
        if before != f"{name}:{first}":
            kind = "again" if before.startswith(f"{name}:") else "leak"
            yield Finding(name, first, kind, f"the same sentence as {before}: {text[:50]!r}")


def _blocks(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    held: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            held.append(line)
        elif held:
            yield number - len(held), held
            held = []
    if held:
        yield number - len(held) + 1, held


def _findings(
    name: str,
    first: int,
    held: list[str],
    wide: bool,
    seen: dict[str, dict[str, int]],
    sentences: dict[str, str],
) -> Iterator[Finding]:
    rows = [(first + place, line) for place, line in enumerate(held)]
    words: list[str] = []
    if wide:
        for number, fault in faults(held, first):
            yield Finding(name, number, "columns", fault)
    for number, line in rows:
        cells = line.split("\t")
        if wide and (line.startswith("#") or len(cells) != WIDTH or not cells[0].isdigit()):
            continue
        if not wide and (len(cells) != 2 or not cells[0].strip() or not cells[1].strip()):
            found = f"{sum(bool(cell.strip()) for cell in cells)} of the two"
            yield Finding(name, number, "unlabelled", f"expected word TAB tag, got {found}; correct the line")
            continue
        words.append(cells[1] if wide else cells[0])
        places = COLUMNS.items() if wide else [("tag", 1)]
        for column, place in places:
            seen.setdefault(column, {}).setdefault(cells[place].strip(), number)
        if wide and cells[3] == "_":
            yield Finding(
                name, number, "tag", f"the word {cells[1]!r} has no upos; tag it, or leave the sentence out"
            )
        if "\ufffd" in line:
            yield Finding(name, number, "damaged", "U+FFFD, the mark of a character lost in a conversion")
    if wide and not words:
        yield Finding(name, first, "nothing", "a sentence without a word; remove it")
    yield from _repeated(name, first, words, sentences)
