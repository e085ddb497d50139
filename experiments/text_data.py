"""Training texts of the language models and translators in texts.py, read from the user's files.

No text is stored. Read next: problems.py, pieces of running text; texts.py, the models.
"""

import gzip
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from problems import Pairs, Text, padded
from weft.metrics.bleu import Bleu
from weft.models import Generator
from weft.ngram.kneser_ney import kneser_ney
from weft.search.greedy import greedy_search
from weft.text.vocabulary import EOS, SOS, Vocabulary

PIECES = 2000
VALID_LINES = 1000


class Running(NamedTuple):
    """Running text for a language model; a score is the total loss over `units` of the validation part."""

    text: Text
    length: int  # of a piece
    rows: int  # pieces in a batch
    units: int  # letters, or words and line ends
    name: str  # of the score

    @property
    def symbols(self) -> int:
        """V."""
        return self.text.letters

    def draw(self, chance: np.random.Generator) -> Pairs:
        """A batch of the training part."""
        return self.text.draw(chance, self.rows, self.length)

    @torch.no_grad()
    def scores(self, model: Generator) -> dict[str, float]:
        """Bits per letter, or perplexity per word: every symbol once, after at least half a piece."""
        return self._scored(
            float(sum(model.loss(one).total for one in windows(self.text.valid, self.length)))
        )

    def grams(self, order: int) -> dict[str, float]:
        """The same symbols by an n-gram model of the training part, with modified Kneser-Ney smoothing."""
        start = self.symbols  # one more, before each part
        train, valid = (np.insert(part.numpy(), 0, start) for part in (self.text.train, self.text.valid))
        logp = kneser_ney(train, size=start + 1, order=order, start=start).score(valid)
        return self._scored(-float(logp[2 : 2 + counted(self.text.valid, self.length)].sum()))

    def _scored(self, total: float) -> dict[str, float]:
        score = total / self.units / math.log(2) if self.name == "bits" else math.exp(total / self.units)
        return {self.name: round(score, 4)}


class Parallel(NamedTuple):
    """Pairs of sentences for a translator."""

    train: list[tuple[list[int], list[int]]]  # by length of the target
    valid: list[tuple[list[int], list[int]]]
    references: list[str]
    vocabulary: Vocabulary
    rows: int

    @property
    def symbols(self) -> int:
        """V, of both languages."""
        return len(self.vocabulary)

    def draw(self, chance: np.random.Generator) -> Pairs:
        """Neighbours in the order of lengths."""
        at = int(chance.integers(len(self.train) - self.rows + 1))
        return paired(self.train[at : at + self.rows])

    @torch.no_grad()
    def scores(self, model: Generator) -> dict[str, float]:
        """Nats per piece with teacher forcing, and BLEU of greedy translations."""
        total = count = 0.0
        said: list[str] = []
        for at in range(0, len(self.valid), 100):
            batch = paired(self.valid[at : at + 100])
            loss = model.loss(batch)
            total, count = total + float(loss.total), count + float(loss.count)
            state = model.start(batch.source, batch.source_mask)
            first = torch.full((len(batch.source),), SOS)
            found = greedy_search(model.step, state, first, eos=EOS, max_length=batch.source.shape[1] + 30)
            said += [self.vocabulary.decode(row) for row in found.tokens[:, 0].tolist()]
        bleu = Bleu().score(said, self.references).value
        return {"loss": round(total / count, 4), "bleu": round(float(bleu), 3)}


def windows(text: Tensor, length: int, rows: int = 64) -> Iterator[Pairs]:
    """Pieces that begin every half piece; the first half is read, but only counts in the first piece.

    The last symbols, too few for half a piece, are left out; `counted` says how many are not.
    """
    half = length // 2
    begins = torch.arange(0, half * ((len(text) - 1 - half) // half), half)
    for some in begins.split(rows):
        piece = text[some[:, None] + torch.arange(2 * half + 1)]
        mask = torch.ones(len(piece), 2 * half, dtype=torch.bool)
        scored = mask.clone()
        scored[some > 0, :half] = False
        yield Pairs(piece[:, :1], mask[:, :1], piece[:, :-1], piece[:, 1:], scored)


def paired(pairs: list[tuple[list[int], list[int]]]) -> Pairs:
    """A batch of sources and targets."""
    source, source_mask = padded([one for one, _ in pairs])
    fed, mask = padded([[SOS, *one] for _, one in pairs])
    return Pairs(source, source_mask, fed, padded([[*one, EOS] for _, one in pairs])[0], mask)


def lines_of(path: Path) -> list[str]:
    """The lines of a text file; beside it, or in its place, may be a file that ends in .gz."""
    packed = path if path.suffix == ".gz" else path.with_name(path.name + ".gz")
    if path.exists() and path != packed:
        return path.read_text("utf-8").split("\n")
    return io.TextIOWrapper(gzip.open(packed), "utf-8").read().split("\n")


def shakespeare(file: Path) -> Running:
    """Tiny Shakespeare letter by letter; the first 90 % are for training, the next 5 % for validation."""
    text = "\n".join(lines_of(file))
    train, valid = text[: len(text) * 90 // 100], text[len(text) * 90 // 100 : len(text) * 95 // 100]
    known = {letter: number for number, letter in enumerate(sorted(set(train)), 1)}
    numbers = [torch.tensor([known.get(letter, 0) for letter in one]) for one in (train, valid)]
    text_of = Text(*numbers, letters=len(known) + 1)
    return Running(text_of, 64, 16, counted(text_of.valid, 64), "bits")


def wikitext(folder: Path) -> Running:
    """WikiText-2 in pieces by byte-pair encoding; the first lines of the validation part, by the word."""
    train, valid = (
        [line.strip() for line in lines_of(folder / f"{split}.txt") if line.strip()]
        for split in ("train", "valid")
    )
    pieces = Vocabulary.train(train, kind="bpe", size=PIECES)
    numbers = []
    for part in (train, valid[:VALID_LINES]):
        rows = pieces.encode_batch(part)
        numbers.append(torch.tensor([number for row in rows for number in (*row, EOS)]))
    words = sum(len(line.split()) + 1 for line in valid[:VALID_LINES])
    share = counted(numbers[1], 64) / len(numbers[1])
    return Running(Text(*numbers, letters=len(pieces)), 64, 8, round(words * share), "perplexity")


def counted(text: Tensor, length: int) -> int:
    """Symbols that `windows` scores."""
    half = length // 2
    return half + half * ((len(text) - 1 - half) // half)


def multi30k(folder: Path) -> Parallel:
    """Multi30k from English to German, in pieces of one vocabulary."""
    sides = {
        split: [lines_of(folder / f"{split}.{language}") for language in ("en", "de")]
        for split in ("train", "val")
    }
    pairs = {
        split: [(one.strip(), other.strip()) for one, other in zip(*both, strict=True) if one and other]
        for split, both in sides.items()
    }
    vocabulary = Vocabulary.train((text for pair in pairs["train"] for text in pair), kind="bpe", size=PIECES)
    coded = {
        split: list(zip(*map(vocabulary.encode_batch, zip(*found, strict=True)), strict=True))
        for split, found in pairs.items()
    }
    by_length = sorted(coded["train"], key=lambda pair: (len(pair[1]), len(pair[0])))
    return Parallel(by_length, coded["val"], [one for _, one in pairs["val"]], vocabulary, 32)


READERS: dict[str, Callable[[Path], Running | Parallel]] = {
    "shakespeare": shakespeare,
    "wikitext": wikitext,
    "multi30k": multi30k,
}
