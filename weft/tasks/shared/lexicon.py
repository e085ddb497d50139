"""Words, letters and tags as numbers, and back; kept in a run as JSON.

Read next: ../../nn/embed/words.py, which reads what `spell` makes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft import jsonfile
from weft.data.conllu import Sentence
from weft.errors import CheckpointError
from weft.nn.embed.contextual import Twice
from weft.nn.embed.words import Spelled

PAD, UNKNOWN = 0, 1
LETTERS = 30
"""Of a word; a longer one shows its first and its last 15."""


class SavedLexicon(jsonfile.Form):
    """A tokenizer.tags.json, or the one of words in context, which has no tags."""

    words: list[str]
    counts: list[jsonfile.Count]
    letters: list[str]
    tags: list[str]
    lowercase: bool


class Lexicon:
    """What a tagger knows by name.

    Args:
        words: numbered from 2; counts: how often each stands in the training data.
        letters: numbered from 2.
        tags: numbered from 0.
        lowercase: words are looked up in small letters.

    Attributes:
        context: spells sentences for a model of words in context, if there is one.
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int],
        letters: Sequence[str],
        tags: Sequence[str],
        *,
        lowercase: bool,
    ) -> None:
        self.words, self.counts, self.letters, self.tags = (
            list(words),
            list(counts),
            list(letters),
            list(tags),
        )
        self.lowercase = lowercase
        self.context: Callable[[Sequence[Sequence[str]]], Any] | None = None
        self._word = {word: number for number, word in enumerate(words, 2)}
        self._letter = {letter: number for number, letter in enumerate(letters, 2)}
        self._tag = {tag: number for number, tag in enumerate(tags)}
        self._seen = {word for word, count in zip(words, counts, strict=True) if count}

    @classmethod
    def learn(
        cls, sentences: Iterable[Sentence], *, lowercase: bool, min_count: int, more: Iterable[str] = ()
    ) -> "Lexicon":
        """Count what stands in the training data.

        Args:
            sentences: with tags.
            lowercase: look words up in small letters.
            min_count: of a word.
            more: words that vectors are given for.
        """
        words: Counter[str] = Counter()
        letters: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for sentence in sentences:
            words.update(form.lower() if lowercase else form for form in sentence.forms)
            letters.update("".join(sentence.forms))
            tags.update(sentence.tags or ())
        kept = {word: count for word, count in sorted(words.items()) if count >= min_count}
        for word in more:
            kept.setdefault(word, 0)
        return cls(list(kept), list(kept.values()), sorted(letters), sorted(tags), lowercase=lowercase)

    @property
    def num_words(self) -> int:
        """Rows of a table of words."""
        return len(self.words) + 2

    @property
    def num_letters(self) -> int:
        """Rows of a table of letters."""
        return len(self.letters) + 2

    def knows(self, form: str) -> bool:
        """Whether a word stands in the training data."""
        return (form.lower() if self.lowercase else form) in self._seen

    def spell(self, sentences: Sequence[Sequence[str]]) -> tuple[Spelled, Tensor]:
        """Sentences [B] of words, each with at least one, for the front end, and their mask [B, S]."""
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

    def read(self, sentences: Sequence[Sequence[str]]) -> tuple[Spelled | Twice, Tensor]:
        """As `spell`, and with the numbers of `context` beside, if there is one."""
        spelled, mask = self.spell(sentences)
        if self.context is None:
            return spelled, mask
        return Twice(spelled, self.context(sentences), mask), mask

    def encode(self, tags: Sequence[str]) -> list[int]:
        """Numbers of tags; one that training never saw is -1."""
        return [self._tag.get(tag, -1) for tag in tags]

    def word_counts(self) -> Tensor:
        """[num_words] how often each word stands in the training data; padding is never replaced."""
        return torch.tensor([1e9, 1e9, *self.counts])

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all."""
        saved = SavedLexicon(
            words=self.words,
            counts=self.counts,
            letters=self.letters,
            tags=self.tags,
            lowercase=self.lowercase,
        )
        jsonfile.save(path, jsonfile.plain(saved))

    @classmethod
    def load(cls, path: Path) -> "Lexicon":
        """Read what `save` wrote.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        remedy = "this is no run of a tagger, or training has not begun"
        saved = jsonfile.load(path, SavedLexicon, remedy)
        if len(saved.counts) != len(saved.words):
            raise CheckpointError(
                f"{path}: expected a count for each of {len(saved.words)} words, got {len(saved.counts)}; "
                f"{remedy}"
            )
        return cls(saved.words, saved.counts, saved.letters, saved.tags, lowercase=saved.lowercase)
