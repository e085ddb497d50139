"""The searches of a translator: one for all sources, or one for each set of terms that a glossary requires.

Read next: glossary.py; searching.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from weft.data.shortlist import Shortlist
from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.glossary import read_glossary
from weft.tasks.shared.writing.searching import Searching
from weft.text.vocabulary import Vocabulary

Words = tuple[str, ...]


class Searches:
    """Searches with one model or with several as one.

    Args:
        models, target, banned, shortlist: see Searching.
        how: the search settings; their glossary is applied here.

    Raises:
        ConfigError: see Searching; or the glossary is damaged.
    """

    def __init__(
        self,
        models: Sequence[Generator],
        target: Vocabulary,
        how: Decoding,
        banned: Sequence[int],
        shortlist: Shortlist | None = None,
    ) -> None:
        path = how.glossary if how.terms == "require" else None
        self._glossary = None if path is None else read_glossary(path)
        self._models, self._target, self._banned = models, target, banned
        self._shortlist = shortlist
        self._how = replace(how, glossary=None)
        self._plain = Searching(models, target, self._how, banned, shortlist)

    def required(self, line: str) -> Words:
        """The terms that the glossary requires for a source."""
        return () if self._glossary is None else self._glossary.required(line)

    def of(self, words: Words) -> Searching:
        """The search for answers that contain these terms; they may be longer by twice the terms' tokens.

        Raises:
            DataError: the vocabulary cannot spell a term.
        """
        if not words:
            return self._plain
        tokens = sum(len(self._target.encode(word)) for word in words)
        how = replace(self._how, require=words, max_extra=self._how.max_extra + 2 * tokens)
        try:
            return Searching(self._models, self._target, how, self._banned, self._shortlist)
        except ConfigError as error:
            raise DataError(f"glossary: {error}") from error


def batches(order: Sequence[int], words: Mapping[int, Words], rows: int) -> Iterator[tuple[list[int], Words]]:
    """Runs of at most `rows` of these numbers with the same terms, and the terms.

    Example:
        >>> list(batches([4, 2, 7, 1], {4: (), 2: (), 7: (), 1: ("a",)}, 2))
        [([4, 2], ()), ([7], ()), ([1], ('a',))]
    """
    for key, run in groupby(order, key=lambda number: words[number]):
        same = list(run)
        yield from ((same[at : at + rows], key) for at in range(0, len(same), rows))
