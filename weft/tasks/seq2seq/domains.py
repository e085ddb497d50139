"""Domains of training files: the sources of a file name its domain, and a search may name one.

The name is written before the source, "<legal> The lease ends.". One source in ten is read without it, so
that the model translates texts of no domain, too. Read next: data.py, `PairData.domains`; glossary.py.

Source: Kobus, Crego and Senellart 2017, "Domain Control for Neural Machine Translation", with the name at
the beginning.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

from weft.errors import ConfigError

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
    """Training pairs whose sources name their domain.

    Args:
        text: the pairs, such as a ParallelText.
        every: whether all do; else one in ten does not, chosen by its text alone.
    """

    def __init__(self, text: Any, domain: str, *, every: bool = False) -> None:
        self._text, self.domain, self._every = text, domain, every
        self.name, self.files, self.notes, self.place = text.name, text.files, text.notes, text.place

    def __iter__(self) -> Iterator[Any]:
        for pair in self._text:
            named = self._every or crc32(pair.source.encode()) % UNNAMED
            yield pair._replace(source=in_domain(self.domain, pair.source)) if named else pair
