"""Glossaries and domains: what is written into sources, and terms that answers must contain.

A glossary is a table of two columns, SOURCE TAB TARGET, also .csv or .xlsx. Where a source contains a term,
its translation is required in the answer, by the search for required words (search/required.py), or written
into the source after the term, for a model whose training texts have such annotations. The domain of a file
is written before its sources, "<legal> The lease ends."; in training one in ten is read without it, so that
the model translates texts of no domain, too. Read next: translator.py.

Source: Dinu et al. 2019, "Training Neural Machine Translation to Apply Terminology Constraints", inline
annotation ("append"), here with marks around the translation instead of factors; Kobus, Crego and Senellart
2017, "Domain Control for Neural Machine Translation", with the name at the beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from weft.data.languages import code_of
from weft.data.lines import read_lines
from weft.data.parallel import one_line
from weft.data.report import Finding
from weft.data.tables import TableFile, is_table, kind_of
from weft.errors import ConfigError, DataError
from weft.search.required import MOST_WORDS
from weft.text.terms import Term, key, occurrences
from weft.words import folded, spans, words

MOST_TERMS = 100_000
MARKS = "<term>", "</term>"
"""Around an annotation; no spaces inside, so that mistakes (text/augmentation.py) leave them alone."""


class Glossary:
    """Terms and their translations.

    Args:
        terms: pairs; a term is found as whole words, in any letter case and Unicode form, the longest first.
    """

    def __init__(self, terms: Sequence[tuple[str, str]]) -> None:
        self._targets = {key(source): target for source, target in terms}
        self._longest = max((len(key.split(" ")) for key in self._targets), default=0)

    def required(self, line: str) -> tuple[str, ...]:
        """The translations of the terms in a source, in its order, each once; at most MOST_WORDS."""
        return tuple(dict.fromkeys(term.target for term in self.found(line)))[:MOST_WORDS]

    def beside(self, other: "Glossary | None") -> "Glossary":
        """These terms, and those of another one that these lack."""
        return Glossary([*(() if other is None else other._targets.items()), *self._targets.items()])

    def annotated(self, line: str, target: str | None = None) -> str:
        """The source with the translation of each term behind it.

        Example:
            >>> Glossary([("cell", "celda")]).annotated("Select a cell.")
            'Select a cell <term> celda </term>.'
        """
        parts, done = [], 0
        for _, end, term in self.found(line):
            if target is None or occurrences(term, target):
                parts += [line[done:end], f" {MARKS[0]} {term} {MARKS[1]}"]
                done = end
        return "".join([*parts, line[done:]])

    def found(self, line: str) -> list[Term]:
        """The terms in a source, with their translations."""
        return list(self._found(line))

    def _found(self, line: str) -> Iterator[Term]:
        found = spans(line)
        read = [folded(line[begin:end]) for begin, end in found]
        at = 0
        while at < len(read):
            for size in range(min(self._longest, len(read) - at), 0, -1):
                target = self._targets.get(" ".join(read[at : at + size]))
                if target is not None:
                    at += size
                    yield Term(found[at - size][0], found[at - 1][1], target)
                    break
            else:
                at += 1


class AnnotatedText:
    """Training pairs; every second source with terms that are translated as in the glossary is annotated.

    Which ones depends on the text of the source alone, so that a model reads terms with and without.
    """

    def __init__(self, text: Any, path: Path) -> None:
        self._text, self._glossary = text, reread(path)
        self.name = text.name
        self.files = [*text.files, path]
        self.notes = text.notes

    def __iter__(self) -> Iterator[Any]:
        for pair in self._text:
            chosen = crc32(pair.source.encode()) % 2
            yield pair._replace(source=self._glossary.annotated(*pair[1:])) if chosen else pair

    def place(self, number: int) -> str:
        """The place of a pair, as file:line."""
        return str(self._text.place(number))


class TermCounts(NamedTuple):
    """How many terms an answer contains."""

    terms: int  # in the sources
    outputs: int  # of them with their translation in the output
    references: int  # of them with their translation in the reference


def kept(
    glossary: Glossary, sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> TermCounts:
    """Count the terms of the sources whose translations the outputs contain, in any letter case."""
    counts = [0, 0, 0]
    for source, output, reference in zip(sources, outputs, references, strict=True):
        for target in glossary.required(source):
            counts[0] += 1
            counts[1] += bool(occurrences(target, output))
            counts[2] += bool(occurrences(target, reference))
    return TermCounts(*counts)


_READ: dict[Path, Glossary] = {}


def read_glossary(path: Path) -> Glossary:
    """A glossary from a file, as it was when this process called `reread`, or first read it."""
    return _READ.get(path) or reread(path)


def reread(path: Path) -> Glossary:
    """A glossary from a file as it is now; if it is damaged, `read_glossary` keeps what it read before."""
    terms = []
    seen: dict[str, tuple[str, int]] = {}
    for number, source, target in _entries(path):
        if not words(source) or not target:
            raise _wrong(path, number, f"{source}\t{target}")
        other, first = seen.setdefault(key(source), (target, number))
        if other != target:
            raise DataError(
                f"{source.strip()!r} is {target!r} here but {other!r} in line {first}; remove one of them",
                path=path,
                line=number,
            )
        terms.append((source, target))
    if not terms or len(terms) > MOST_TERMS:
        raise DataError(f"expected 1 to {MOST_TERMS:,} terms, got {len(terms):,}", path=path)
    _READ[path] = Glossary(terms)
    return _READ[path]


def _entries(path: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the term and the translation of each entry."""
    if not is_table(path):
        for number, line in enumerate(read_lines(path), 1):
            source, tab, target = line.partition("\t")
            if line.strip() and (not tab or "\t" in target):
                raise _wrong(path, number, line)
            if tab:
                yield number, source, target.strip()
        return
    table = TableFile(path)
    names = table.names()
    named = [n for n, name in enumerate(names) if name.lower() in _NAMES or code_of(name) is not None]
    columns = named[:2] if len(named) >= 2 else [0, 1]
    if len(names) != 2 and len(named) != 2:
        raise DataError(
            f"expected two columns (term, translation), got {', '.join(names)[:100]}; call them source and "
            "target in the first line",
            path=path,
            line=table.number,
        )
    for row in table.rows():
        if isinstance(row, Finding):
            told = row.text.replace("2 columns", _form(path))
            raise DataError(told, path=path, line=row.line or None)
        cells = [one_line(row.cells[column]).strip() for column in columns]
        if any(cells) and not (row.number == table.number and len(named) == 2):
            yield row.number, cells[0], cells[1]


_NAMES = "term", "translation", "source", "target"


def _form(path: Path) -> str:
    return "TERM TAB TRANSLATION" if kind_of(path) in ("", ".tsv") else "a term and its translation"


def _wrong(path: Path, number: int, line: str) -> DataError:
    told = f"expected {_form(path)}, got {line[:60]!r}; correct or remove the line"
    return DataError(told, path=path, line=number)


UNNAMED = 10
"""One source of so many is read without its domain in training."""


def in_domain(domain: str, line: str) -> str:
    """A source with the name of its domain; an empty one stays empty.

    Example:
        >>> in_domain("legal", "The lease ends.")
        '<legal> The lease ends.'
    """
    return f"<{domain}> {line}" if line.strip() else line


def check_domain(domain: str, known: Iterable[str]) -> None:
    """Check that a model knows the domain that a search names, if it names one."""
    names = sorted({*known})
    if domain and not names:
        raise ConfigError("domain: the model was trained without data.domains; leave it out")
    if domain and domain not in names:
        raise ConfigError(f"domain: expected one of {', '.join(names)}, got {domain}")


class DomainText:
    """Training pairs whose sources name their domain: all, or nine in ten, chosen by their text alone."""

    def __init__(self, text: Any, domain: str, *, every: bool = False) -> None:
        self._text, self.domain, self._every = text, domain, every
        self.name, self.files, self.notes, self.place = text.name, text.files, text.notes, text.place

    def __iter__(self) -> Iterator[Any]:
        for pair in self._text:
            named = self._every or crc32(pair.source.encode()) % UNNAMED
            yield pair._replace(source=in_domain(self.domain, pair.source)) if named else pair
