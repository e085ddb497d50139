"""A glossary: terms of the source language, and how they must be translated.

A table of two columns, SOURCE TAB TARGET. Where a source contains a term, its translation is required in the
answer, by the search for required words (search/required.py). Read next: translator.py.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from weft.data.lines import read_lines
from weft.errors import DataError
from weft.search.required import MOST_WORDS

MOST_TERMS = 100_000


class Glossary:
    """Terms and their translations.

    Args:
        terms: pairs; a term is found as whole words, in any letter case, the longest first.
    """

    def __init__(self, terms: Sequence[tuple[str, str]]) -> None:
        self._targets = {_key(source): target for source, target in terms}
        self._longest = max((len(key.split(" ")) for key in self._targets), default=0)

    def required(self, line: str) -> tuple[str, ...]:
        """The translations of the terms in a source, in its order, each once; at most MOST_WORDS.

        Example:
            >>> glossary = Glossary([("cell", "celda"), ("Cell range", "rango de celdas")])
            >>> glossary.required("Select the cell range, then a cell.")
            ('rango de celdas', 'celda')
        """
        words = _words(line)
        found, at = [], 0
        while at < len(words):
            for size in range(min(self._longest, len(words) - at), 0, -1):
                target = self._targets.get(" ".join(words[at : at + size]))
                if target is not None:
                    found.append(target)
                    at += size
                    break
            else:
                at += 1
        return tuple(dict.fromkeys(found))[:MOST_WORDS]


class Kept(NamedTuple):
    """How many terms an answer contains."""

    terms: int  # in the sources
    outputs: int  # of them with their translation in the output
    references: int  # of them with their translation in the reference


def kept(
    glossary: Glossary, sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> Kept:
    """Count the terms of the sources whose translations the outputs contain, in any letter case.

    Example:
        >>> glossary = Glossary([("cell", "celda"), ("row", "fila")])
        >>> kept(glossary, ["a cell", "a row"], ["una celda", "una hilera"], ["una celda", "una fila"])
        Kept(terms=2, outputs=1, references=2)
    """
    counts = [0, 0, 0]
    for source, output, reference in zip(sources, outputs, references, strict=True):
        for target in glossary.required(source):
            key = f" {_key(target)} "
            counts[0] += 1
            counts[1] += key in f" {_key(output)} "
            counts[2] += key in f" {_key(reference)} "
    return Kept(*counts)


_READ: dict[Path, Glossary] = {}


def read_glossary(path: Path) -> Glossary:
    """A glossary from a file, as it was when this process called `reread`, or first read it.

    Raises:
        DataError: see reread.
    """
    return _READ.get(path) or reread(path)


def reread(path: Path) -> Glossary:
    """A glossary from a file as it is now; if it is damaged, `read_glossary` keeps what it read before.

    Raises:
        DataError: the file is missing, a line does not have two columns, one is empty, or a
            term has two translations.
    """
    terms = []
    seen: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        source, tab, target = line.partition("\t")
        if not tab or not _words(source) or not target.strip() or "\t" in target:
            raise DataError(
                f"expected TERM TAB TRANSLATION, got {line[:60]!r}; correct or remove the line",
                path=path,
                line=number,
            )
        target = target.strip()
        other, first = seen.setdefault(_key(source), (target, number))
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


def _words(text: str) -> list[str]:
    """Words and single other characters, in lower case."""
    return re.findall(r"\w+|[^\w\s]", text.casefold())


def _key(text: str) -> str:
    return " ".join(_words(text))
