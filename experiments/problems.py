"""The data of the experiments: small problems that are drawn, and sentences of the embedded corpus.

Read next: 01_length.py, which translates the invented language; 04_depth.py, which writes letters.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data import corpus
from weft.models import Generator
from weft.nn import Categorical, Decoder, RecurrentDecoder, RecurrentEncoder, ScaledScore, Tokens
from weft.nn.cells import GRU
from weft.nn.decoders.recurrent import Enters
from weft.tasks.memory.data import Adding, drawn

SOS, EOS, FIRST, WORDS = 0, 1, 2, 12
"""The invented language's two signs, its first word, and the number of its words without synonyms."""


class Pairs(NamedTuple):
    """What a Generator learns from."""

    source: Tensor  # [B, S]
    source_mask: Tensor  # [B, S] bool
    target_in: Tensor  # [B, T]
    target_out: Tensor  # [B, T]
    target_mask: Tensor  # [B, T] bool


class Labels(NamedTuple):
    """What a Labeller learns from."""

    source: Tensor  # [B, S] or [B, S, D]
    source_mask: Tensor  # [B, S] bool
    target: Tensor  # [B] or [B, S]


def invented(
    chance: np.random.Generator,
    rows: int,
    shortest: int,
    longest: int,
    *,
    doubt: float = 0.0,
) -> Pairs:
    """Sentences of one length a batch; a translation is the words in reverse order, each by its own word.

    Args:
        doubt: with this probability a word is rendered by its synonym, so that translations are not certain.
    """
    length = int(chance.integers(shortest, longest + 1))
    source = chance.integers(0, WORDS, (rows, length))
    synonym = WORDS * (chance.random((rows, length)) < doubt)
    target = ((source * 7 + 3) % WORDS + synonym)[:, ::-1]
    ends = np.full((rows, 1), EOS), np.full((rows, 1), SOS)
    out = torch.from_numpy(np.concatenate([target + FIRST, ends[0]], 1))
    fed = torch.from_numpy(np.concatenate([ends[1], target + FIRST], 1))
    return Pairs(torch.from_numpy(source + FIRST), _all(rows, length), fed, out, _all(rows, length + 1))


def translator(size: int, *, attention: bool = True) -> Generator:
    """A Generator for the invented language: GRUs of this size, read both ways."""
    enters: Enters = "late" if attention else "never"
    encoder = RecurrentEncoder(size, sizes=(size,), cell=GRU, bidirectional=True)
    decoder = RecurrentDecoder(
        size, encoder, sizes=(size,), cell=GRU, score=ScaledScore, key_size=size, enters=enters
    )
    target, source = Tokens(2 * WORDS + FIRST, size), Tokens(WORDS + FIRST, size)
    head = Categorical(decoder.size, 2 * WORDS + FIRST)
    return Generator(target, decoder, head, encoder=encoder, source_embed=source)


def sums(chance: np.random.Generator, rows: int, length: int) -> Labels:
    """The adding problem: numbers and marks [B, T, 2], the sum of the two that are marked [B]."""
    first = int(chance.integers(1 << 40))
    x, y = drawn(Adding().draw, [1, 0], np.arange(first, first + rows), length, 0)
    return Labels(torch.from_numpy(x), _all(rows, length), torch.from_numpy(y))


def counts(chance: np.random.Generator, rows: int, length: int) -> Labels:
    """Ones and zeros [B, T, 1], and how many ones there were so far [B, T], in tenths."""
    ones = (chance.random((rows, length, 1)) < 0.5).astype(np.float32)
    return Labels(
        torch.from_numpy(ones),
        _all(rows, length),
        torch.from_numpy(ones[..., 0].cumsum(1).astype(np.float32) / 10),
    )


def sentences(language: str, split: str = "train", most: int = 4000) -> list[str]:
    """Help texts of the embedded corpus."""
    other = "de" if language == "en" else "en"
    found: list[str] = []
    for pair in corpus("libreoffice-help", language, other, split):
        found.append(pair.source)
        if len(found) == most:
            break
    return found


def numbered(lines: list[list[str]], most: int) -> tuple[dict[str, int], list[list[int]]]:
    """The most frequent words numbered from 1 (0 is any other), and the lines in these numbers."""
    frequent = Counter(word for line in lines for word in line).most_common(most)
    known = {word: number for number, (word, _) in enumerate(frequent, 1)}
    return known, [[known.get(word, 0) for word in line] for line in lines]


def padded(rows: list[list[int]], longest: int = 1000) -> tuple[Tensor, Tensor]:
    """Rows of different length as [B, S] and their mask."""
    rows = [row[:longest] for row in rows]
    width = max(len(row) for row in rows)
    mask = torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows])
    return torch.tensor([row + [0] * (width - len(row)) for row in rows]), mask


class Text(NamedTuple):
    """The letters of running text as numbers."""

    train: Tensor  # [N]
    valid: Tensor  # [N]
    letters: int

    def draw(self, chance: np.random.Generator, rows: int, length: int) -> Pairs:
        """Pieces of the training part, each letter to be told from those before it."""
        begin = torch.from_numpy(chance.integers(0, len(self.train) - length - 1, rows))
        return self._pieces(self.train, begin, length)

    def held_out(self, length: int, most: int = 64) -> Pairs:
        """The same of the validation part, one piece after the other."""
        begin = torch.arange(0, len(self.valid) - length - 1, length)[:most]
        return self._pieces(self.valid, begin, length)

    def _pieces(self, text: Tensor, begin: Tensor, length: int) -> Pairs:
        piece = text[begin[:, None] + torch.arange(length + 1)]
        mask = _all(len(piece), length)
        return Pairs(piece[:, :1], mask[:, :1], piece[:, :-1], piece[:, 1:], mask)


def english_letters(held_out: str = "valid") -> Text:
    """English help texts, letter by letter; letters seen less than 20 times are one.

    Args:
        held_out: "valid", to choose learning rates by, or "test", for verdicts.
    """
    train, valid = "\n".join(sentences("en")), "\n".join(sentences("en", held_out))
    known = {letter: n for n, (letter, count) in enumerate(Counter(train).most_common(), 1) if count >= 20}
    as_numbers = [torch.tensor([known.get(letter, 0) for letter in text]) for text in (train, valid)]
    return Text(as_numbers[0], as_numbers[1], len(known) + 1)


def writer(decoder: Decoder, width: int, letters: int) -> Generator:
    """A language model of letters."""
    return Generator(Tokens(letters, width), decoder, Categorical(decoder.size, letters))


@torch.no_grad()
def started_plain(encoder: RecurrentEncoder) -> RecurrentEncoder:
    """The encoder with W_hh drawn from N(0, 1/H): Weft's cells start orthogonal, which is a remedy itself."""
    for cell in encoder.stack.forwards:
        nn.init.normal_(cell.weight_h, std=cell.size**-0.5)
    return encoder


@torch.no_grad()
def nats(model: nn.Module, batch: Pairs) -> float:
    """The mean loss on a batch, the model left in the mode it was in."""
    was = model.training
    model.eval()
    value = float(model.loss(batch).mean)
    model.train(was)
    return value


def _all(rows: int, steps: int) -> Tensor:
    return torch.ones(rows, steps, dtype=torch.bool)
