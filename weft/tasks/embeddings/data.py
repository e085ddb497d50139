"""A recipe's section `data` for word vectors, a text as numbers, and its batches for word2vec and GloVe.

Read next: ../../nn/embed/neighbours.py, which learns from them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch

from weft.data.plain import PlainText, side
from weft.data.vectors import read_questions
from weft.errors import CheckpointError, ConfigError, DataError
from weft.nn.embed.neighbours import Cells, Neighbourhood
from weft.setting_types import AtLeastOne, Bounds, Share, check_fields
from weft.store import jsonfile
from weft.tasks.task import Split
from weft.text.characters import normalise
from weft.text.pieces import cut_words

POWER = 0.75
"""Exponent of a word's count in the noise distribution (Mikolov et al. 2013)."""


class SavedWords(jsonfile.Schema):
    """A tokenizer.words.json."""

    words: list[str]
    counts: list[jsonfile.Count]


class WordList:
    """The words that have vectors, the most frequent one first, and their counts in the training text."""

    def __init__(self, words: Sequence[str], counts: Sequence[int]) -> None:
        self.words, self.counts = list(words), list(counts)
        self.number = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def learn(cls, lines: Iterable[list[str]], *, min_count: int) -> "WordList":
        """Count words; words with equal counts are in alphabetical order."""
        counts = Counter(chain.from_iterable(lines))
        kept = sorted(((-count, word) for word, count in counts.items() if count >= min_count))
        if len(kept) < 2:
            raise DataError(
                f"expected at least 2 words that occur {min_count} times, got {len(kept)} "
                f"of {len(counts):,} different words; give more text, or lower data.min_count"
            )
        return cls([word for _, word in kept], [-count for count, _ in kept])

    def save(self, path: Path) -> None:
        """Write the list as JSON, atomically."""
        jsonfile.save(path, {"words": self.words, "counts": self.counts})

    @classmethod
    def load(cls, path: Path) -> "WordList":
        """Read what `save` wrote."""
        remedy = "this is not a run of word vectors, or training has not started"
        saved = jsonfile.load(path, SavedWords, remedy)
        if not 2 <= len(set(saved.words)) == len(saved.words) == len(saved.counts):
            raise CheckpointError(f"{path}: expected 2 or more words, each once with a count; {remedy}")
        return cls(saved.words, saved.counts)


class Corpus:
    """A text as one row of numbers [N] int32 and the line of each; words without a vector are left out.

    `total` also counts those.
    """

    def __init__(self, lines: Iterable[list[str]], known: WordList) -> None:
        parts, self.total, number = [], 0, known.number
        for line in lines:
            self.total += len(line)
            parts.append([number[word] for word in line if word in number])
        self.words = np.fromiter(chain.from_iterable(parts), np.int32)
        sizes = np.array([len(part) for part in parts])
        self.lines = np.repeat(np.arange(len(parts), dtype=np.int32), sizes)
        if not len(sizes) or sizes.max() < 2:
            raise DataError(
                "expected a line of the training text with two words that have vectors, got none; lower "
                "data.min_count"
            )


class WordWindows:
    """The batches of word2vec, with subsampled frequent words, random windows and random noise words.

    Equal seeds and numbers of pieces give equal batches.
    """

    def __init__(
        self,
        corpus: Corpus,
        counts: Sequence[int],
        *,
        window: int,
        subsample: float,
        length: int,
        noise: int,
        seed: int,
    ) -> None:
        self.corpus, self.window, self.length, self.seed = corpus, window, length, seed
        self.drawn = noise
        count = np.array(counts, dtype=np.float64)
        kept = subsample * count.sum() / count
        self._kept = np.minimum(1, np.sqrt(kept) + kept) if subsample else np.ones(len(count))
        sums = (count**POWER).cumsum()
        self._noise = sums / sums[-1]

    def __len__(self) -> int:
        return -(-len(self.corpus.words) // self.length)

    def batch(self, numbers: np.ndarray) -> Neighbourhood:
        """The batch of these piece numbers; a number above their count is a piece in a later epoch."""
        chance = np.random.default_rng([self.seed, len(numbers), int(numbers[0])])
        at = (numbers % len(self))[:, None] * self.length + np.arange(self.length)  # [B, L]
        inside = at < len(self.corpus.words)
        at = np.minimum(at, len(self.corpus.words) - 1)
        words = self.corpus.words[at].astype(np.int64)
        real = inside & (chance.random(at.shape) < self._kept[words])
        longest = max(1, int(real.sum(1).max()))
        order = np.argsort(~real, axis=1, kind="stable")[:, :longest]
        real = np.take_along_axis(real, order, 1)
        words = np.take_along_axis(words, order, 1)
        lines = np.where(real, np.take_along_axis(self.corpus.lines[at], order, 1), -1).astype(np.int64)
        reach = chance.integers(1, self.window + 1, words.shape)
        noise = np.searchsorted(self._noise, chance.random((len(numbers), self.drawn)), side="right")
        row, line, far, drawn = (torch.from_numpy(each) for each in (words, lines, reach, noise))
        return Neighbourhood(row, line, far, drawn, int(inside.sum()))


class CooccurrenceTable:
    """Counts of two words in a line, at most `window` apart, each weighted by 1 / distance (GloVe)."""

    def __init__(self, corpus: Corpus, num_words: int, *, window: int) -> None:
        words, lines = corpus.words.astype(np.int64), corpus.lines
        keys: np.ndarray = np.empty(0, np.int64)
        sums: np.ndarray = np.empty(0)
        for apart in range(1, window + 1):
            together = lines[apart:] == lines[:-apart]
            left, right = words[:-apart][together], words[apart:][together]
            found, times = np.unique(
                np.concatenate([left * num_words + right, right * num_words + left]), return_counts=True
            )
            keys, which = np.unique(np.concatenate([keys, found]), return_inverse=True)
            sums = np.bincount(which, np.concatenate([sums, times / apart]), len(keys))
        self.keys, self.counts, self.num_words = keys, sums.astype(np.float32), num_words

    def __len__(self) -> int:
        return len(self.keys)

    def batch(self, numbers: np.ndarray) -> Cells:
        """The cells of these numbers."""
        numbers = numbers % len(self.keys)
        words, others = np.divmod(self.keys[numbers], self.num_words)
        counts = torch.from_numpy(self.counts[numbers])
        return Cells(torch.from_numpy(words), torch.from_numpy(others), counts, len(numbers))


@dataclass(frozen=True, kw_only=True)
class WordsData:
    """The source of the text, and which words are neighbours.

    Args:
        folder: folder of train and test; by default the current one.
        train: a text file, also .gz, .xz, .zst.
        test: pairs of words with a similarity (word TAB word TAB number) or analogies (four words per line).
        corpus: an embedded corpus instead of a file.
        language: of the corpus.
        tokens: word (cut at punctuation) or space (split at white space, for tokenised text).
        form: Unicode normal form.
        lowercase: convert the text to lower case.
        min_count: rarer words are removed from the text.
        window: number of words to each side; word2vec draws a number from 1 to this for each word.
        subsample: t; a word with share f of the text is kept with probability min(1, √(t/f) + t/f); 0 keeps
            all. GloVe always keeps all.
        length: words of the text per row of a batch.
        noise: random words per row, which all words of the row share; not for GloVe. Fewer are faster.
        batch_rows: rows per batch; for GloVe batch_rows x length cells of its table.

    Source: Mikolov et al. 2013; the probability is from their program.
    """

    folder: Path = Path()
    train: str | None = None
    test: str | None = None
    corpus: str | None = None
    language: str | None = None
    tokens: Literal["word", "space"] = "word"
    form: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = True
    min_count: AtLeastOne = 5
    window: AtLeastOne = 5
    subsample: Share = 0.001
    length: Annotated[int, Bounds(ge=2)] = 128
    noise: AtLeastOne = 256
    batch_rows: AtLeastOne = 48

    renamed: ClassVar[Mapping[str, str]] = {"rows": "batch_rows"}

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.corpus is None) == (self.train is None):
            raise ConfigError("set exactly one of corpus (embedded) and train (your file)")
        if (self.corpus is None) != (self.language is None):
            raise ConfigError("language: needs corpus; set both, such as libreoffice-help and en")

    def has(self, split: Split) -> bool:
        """Whether there is a text, or questions to score the vectors on."""
        return split == "valid" or (split == "test" and self.test is not None)

    def find(self, split: Split) -> None:
        """Check that the text or the questions are there; raises as `open` and `read_questions`."""
        if split == "test":
            read_questions(self.questions(split))
        else:
            self.open()

    def open(self) -> PlainText:
        """The training text."""
        if self.corpus is not None and self.language is not None:
            return side(self.corpus, self.language, "train")
        return PlainText(self.folder / str(self.train))

    def lines(self) -> Iterator[list[str]]:
        """The words of each line."""
        for line in self.open():
            yield self.words(line)

    def words(self, line: str) -> list[str]:
        """The words of a line, as in training."""
        return cut_words(line, self.tokens, form=self.form, lowercase=self.lowercase)

    def word(self, word: str) -> str:
        """One word in the spelling of the vectors."""
        return normalise(word, form=self.form, lowercase=self.lowercase)

    def questions(self, split: Split) -> Path:
        """The file of word pairs or analogies."""
        if split != "test" or self.test is None:
            raise ConfigError(
                f"data.{split}: the recipe names no word pairs or analogies for it; give a file with --data"
            )
        return self.folder / self.test

    def describe(self) -> str:
        """The name of the text, for titles."""
        return f"{self.corpus} {self.language}" if self.corpus else self.open().name
