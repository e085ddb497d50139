"""A recipe's section `vocabulary`: how text is tokenised, learnt from the training text alone.

Read next: ../text/vocabulary.py, which learns it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weft.setting_types import Size
from weft.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """The tokens of single texts, such as sentences to classify or captions.

    Args:
        kind: word; space (words between spaces, for tokenised texts); bpe or unigram
            (subwords); or character.
        size: number of tokens with the four special ones, of words and characters at most; null takes
            every word or character.
        min_count: rarer words (of a word vocabulary) or characters become unknown.
        form: Unicode normal form.
        lowercase: convert the text to lower case.
    """

    kind: Literal["word", "space", "bpe", "unigram", "character"] = "word"
    size: Size | None = 10000
    min_count: int = 1
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = True

    def learn(self, texts: Sequence[str]) -> Vocabulary:
        """The vocabulary of these texts, with at most `size` tokens."""
        own: dict[str, Any] = {"min_count": self.min_count, "form": self.form, "lowercase": self.lowercase}
        return Vocabulary.train(texts, kind=self.kind, size=self.size, **own)


@dataclass(frozen=True, kw_only=True)
class ProseVocabulary:
    """The tokens of running text.

    Args:
        kind: space (words between white space, for tokenised text; <unk> in it is the
            unknown symbol), word (cut at punctuation too), character, or subwords (bpe, unigram).
        size: number of tokens with the four special ones, of words and characters at most; null takes
            every word or character.
        min_count: rarer words or characters become unknown.
        form: Unicode normal form.
        lowercase: convert the text to lower case.
    """

    kind: Literal["space", "word", "character", "bpe", "unigram"] = "word"
    size: Size | None = None
    min_count: int = 1
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False

    def learn(self, lines: Iterable[str]) -> Vocabulary:
        """The vocabulary of these lines."""
        return Vocabulary.train(
            lines,
            kind=self.kind,
            size=self.size,
            min_count=self.min_count,
            form=self.form,
            lowercase=self.lowercase,
        )
