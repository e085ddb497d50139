"""A recipe's section `vocabulary`: how text is tokenised, learnt from the training text alone.

Read next: ../text/vocabulary.py, which learns it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from weft.setting_types import Size
from weft.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class TextVocabulary:
    """How text is tokenised.

    Args:
        kind: subwords (bpe, unigram), words cut at punctuation too (word), words between white space, for
            tokenised texts (space; <unk> in running text is the unknown symbol), or characters.
        size: number of tokens with the four special ones, of words and characters at most; null takes
            every word or character.
        min_count: rarer words (of a word vocabulary) or characters become unknown.
        form: Unicode normal form.
        lowercase: convert the text to lower case, output too.
    """

    kind: Literal["bpe", "unigram", "word", "space", "character"] = "word"
    size: Size | None = None
    min_count: int = 1
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False

    def learn(self, lines: Iterable[str]) -> Vocabulary:
        """The vocabulary of these lines."""
        own: dict[str, Any] = {"min_count": self.min_count, "form": self.form, "lowercase": self.lowercase}
        return Vocabulary.train(lines, kind=self.kind, size=self.size, **own)


@dataclass(frozen=True, kw_only=True)
class WordSettings(TextVocabulary):
    """The tokens of single texts, such as sentences to classify or captions."""

    size: Size | None = 10000
    lowercase: bool = True


@dataclass(frozen=True, kw_only=True)
class ProseVocabulary(TextVocabulary):
    """The tokens of running text."""
