"""The lines of texts, cut into sentences for a model, and the translations put together again.

Read next: sentences.py.
"""

import re
from collections.abc import Sequence

from weft.documents.sentences import split

_END = re.compile(r"(\r\n|\n|\r)")


class Plan:
    r"""The sentences of texts; line ends and all white space are kept.

    Args:
        texts: each of one line or more.
        source, target: language codes.

    Raises:
        ConfigError: no splitter is installed.

    Example:
        >>> plan = Plan([" It was. It is.\n\nEnd.\t", ""], "en", "es")
        >>> plan.sentences
        ['It was.', 'It is.', 'End.']
        >>> plan.joined(["Fue.", "Es.", "Fin."])
        [' Fue. Es.\n\nFin.\t', '']
    """

    def __init__(self, texts: Sequence[str], source: str, target: str) -> None:
        self._target = target
        self._rows = [_END.split(text) for text in texts]
        self._cut = [[split(line, source) for line in row[::2]] for row in self._rows]
        self.sentences = [text for row in self._cut for line in row for text in line.texts]

    def joined(self, translations: Sequence[str]) -> list[str]:
        """The translation of each text.

        Args:
            translations: one for each sentence.
        """
        rest = iter(translations)
        found = []
        for row, cut in zip(self._rows, self._cut, strict=True):
            parts = list(row)
            parts[::2] = [line.joined([next(rest) for _ in line.texts], self._target) for line in cut]
            found.append("".join(parts))
        return found
