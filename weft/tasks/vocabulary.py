"""A recipe's section `vocabulary`: how text is tokenised; and words, letters and tags as numbers (Lexicon).

Read next: ../text/vocabulary.py, which learns it; ../nn/embed/words.py, which reads what `spell` returns.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from weft.data.conll import TaggedForm
from weft.data.conllu import ConlluSentence
from weft.errors import CheckpointError
from weft.nn.embed.contextual import Twice
from weft.nn.embed.words import Spelled
from weft.setting_types import Size
from weft.store import jsonfile
from weft.text.characters import Alphabet
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


PAD, UNKNOWN = 0, 1
LETTERS = 30
"""Maximum number of letters of a word; only the first and last 15 letters of a longer word are read."""


class SavedLexicon(jsonfile.Schema):
    """A tokenizer.tags.json, or the lexicon of words in context, which has no tags."""

    words: list[str]
    counts: list[jsonfile.Count]
    letters: list[str]
    tags: list[str]
    lowercase: bool
    separator: str = ""  # of the columns of the training data, see TaggedForm; empty for CoNLL-U
    width: jsonfile.Count = 0
    word: jsonfile.Count = 0


class Lexicon:
    """The words and letters, numbered from 2, and the tags, from 0, that a model knows."""

    form: TaggedForm | None = None  # of the training data, if it is one of ../data/conll.py
    context: Callable[[Sequence[Sequence[str]]], Any] | None = None
    """Spells sentences for a model of words in context, if there is one."""
    reader: Callable[[Sequence[Sequence[str]]], tuple[Any, Tensor]] | None = None
    """Reads sentences instead, for a model over features or pieces of words."""

    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int],
        letters: Sequence[str],
        tags: Sequence[str],
        *,
        lowercase: bool,
    ) -> None:
        self.words, self.counts = list(words), list(counts)
        self.letters, self.tags = list(letters), list(tags)
        self.lowercase = lowercase
        self._word = {word: number for number, word in enumerate(words, 2)}
        self._letter = {letter: number for number, letter in enumerate(letters, 2)}
        self._tag = {tag: number for number, tag in enumerate(tags)}
        self._seen = {word for word, count in zip(words, counts, strict=True) if count}

    @classmethod
    def learn(
        cls, sentences: Iterable[ConlluSentence], *, lowercase: bool, min_count: int, more: Iterable[str] = ()
    ) -> "Lexicon":
        """Count words, letters and tags of the training data."""
        words: Counter[str] = Counter()
        letters: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        form: TaggedForm | None = None
        for sentence in sentences:
            form = form or sentence.form
            words.update(form.lower() if lowercase else form for form in sentence.forms)
            letters.update("".join(sentence.forms))
            tags.update(sentence.tags or ())
        kept = {word: count for word, count in sorted(words.items()) if count >= min_count}
        for word in more:
            kept.setdefault(word, 0)
        found = cls(list(kept), list(kept.values()), sorted(letters), sorted(tags), lowercase=lowercase)
        found.form = form
        return found

    @property
    def num_words(self) -> int:
        """Rows of a table of words."""
        return len(self.words) + 2

    @property
    def num_letters(self) -> int:
        """Rows of a table of letters."""
        return len(self.letters) + 2

    @cached_property
    def alphabet(self) -> Alphabet:
        """Its letters, and those of its words."""
        return Alphabet([*self.letters, *"".join(self.words)])

    def knows(self, form: str) -> bool:
        """Whether a word occurs in the training data."""
        return (form.lower() if self.lowercase else form) in self._seen

    def spell(self, sentences: Sequence[Sequence[str]]) -> tuple[Spelled, Tensor]:
        """Sentences [B] of one or more words as the embedding reads them, and their mask [B, S]."""
        longest = max(map(len, sentences))
        different: dict[str, int] = {}
        which = np.zeros((len(sentences), longest), dtype=np.int64)
        for row, forms in enumerate(sentences):
            which[row, : len(forms)] = [different.setdefault(form, len(different)) for form in forms]
        known = [self._word.get(form.lower() if self.lowercase else form, UNKNOWN) for form in different]
        mask = np.arange(longest)[None] < np.array([len(forms) for forms in sentences])[:, None]
        words = np.where(mask, np.array(known, dtype=np.int64)[which], PAD)
        cut = [
            form if len(form) <= LETTERS else form[: LETTERS // 2] + form[-LETTERS // 2 :]
            for form in different
        ]
        letters = np.zeros((len(cut), max(map(len, cut))), dtype=np.int64)
        for row, form in enumerate(cut):
            letters[row, : len(form)] = [self._letter.get(letter, UNKNOWN) for letter in form]
        tensors = (torch.from_numpy(each) for each in (words, letters, which))
        return Spelled(*tensors), torch.from_numpy(mask)

    def read(self, sentences: Sequence[Sequence[str]]) -> tuple[Any, Tensor]:
        """Like `spell`, with the input of `context` if there is one; or what `reader` reads."""
        if self.reader is not None:
            return self.reader(sentences)
        spelled, mask = self.spell(sentences)
        if self.context is None:
            return spelled, mask
        return Twice(spelled, self.context(sentences), mask), mask

    def encode(self, tags: Sequence[str]) -> list[int]:
        """Numbers of tags; -1 for a tag that training never saw."""
        return [self._tag.get(tag, -1) for tag in tags]

    def word_counts(self) -> Tensor:
        """[num_words] the count of each word in the training data; padding counts as frequent."""
        return torch.tensor([1e9, 1e9, *self.counts])

    def rows(self, embed: str) -> dict[str, list[str]]:
        """The row names of the tables of words and letters in a part of this name; see Pipeline.rows."""
        part = f"{embed}." if embed else ""
        special = ["<pad>", "<unk>"]
        return {
            f"{part}table.weight": [*special, *(f"▁{word}" for word in self.words)],
            f"{part}characters.table.weight": [*special, *self.letters],
        }

    def save(self, path: Path) -> None:
        """Write the lexicon as JSON, atomically."""
        form = self.form or ()
        saved = SavedLexicon(self.words, self.counts, self.letters, self.tags, self.lowercase, *form)
        jsonfile.save(path, jsonfile.plain(saved))

    @classmethod
    def load(cls, path: Path, kind: str = "a tagger") -> "Lexicon":
        """Read what `save` wrote."""
        remedy = f"this is not a run of {kind}, or training has not started"
        saved = jsonfile.load(path, SavedLexicon, remedy)
        if len(saved.counts) != len(saved.words):
            raise CheckpointError(
                f"{path}: expected a count for each of {len(saved.words)} words, got {len(saved.counts)}; "
                f"{remedy}"
            )
        found = cls(saved.words, saved.counts, saved.letters, saved.tags, lowercase=saved.lowercase)
        found.form = TaggedForm(saved.separator, saved.width, saved.word) if saved.separator else None
        return found
