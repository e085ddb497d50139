"""Small models and batches that objectives are tried on: a recurrent one, a Transformer, a decoder alone."""

from typing import Any

import pytest
import torch

from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.randomness import drawing
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.text.vocabulary import Vocabulary

WORDS = ["red", "green", "blue", "seven", "eleven"]
SOURCES = [[5, 6, 7, 8, 4, 5, 5], [8], [6, 4]]
TARGETS = [[4, 5, 6, 7, 8], [7], [5, 5, 4]]


class Writes:
    """A task as far as an objective looks at it."""

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self.vocabulary = vocabulary

    def writes(self) -> Vocabulary | None:
        return self.vocabulary


def words() -> Vocabulary:
    return Vocabulary.train([" ".join(WORDS)], kind="word", size=None)


def model(kind: str, *, dropout: float = 0.3) -> Generator:
    torch.manual_seed(3)
    size = 4 + len(WORDS)
    embed = Tokens(size, 6)
    if kind == "prompt":
        decoder = RecurrentDecoder(6, sizes=(7,))
        return Generator(embed, decoder, Categorical(7, size), prompt="read").double()
    if kind == "recurrent":
        encoder: Any = RecurrentEncoder(6, sizes=(5,), bidirectional=True)
        written: Any = RecurrentDecoder(
            6, encoder, sizes=(7,), enters="both", input_feeding=True, dropout=dropout
        )
    else:
        encoder = TransformerEncoder(6, size=6, num_layers=1, num_heads=2, dropout=dropout)
        written = TransformerDecoder(6, encoder, size=6, num_layers=1, num_heads=2, dropout=dropout)
    return Generator(embed, written, Categorical(written.size, size), encoder=encoder).double()


def batch(sources: list[list[int]] = SOURCES, targets: list[list[int]] = TARGETS) -> PairBatch:
    return collate_pairs(sources, targets)


def seeded() -> Any:
    return drawing(torch.Generator().manual_seed(11))


every_model = pytest.mark.parametrize("kind", ["recurrent", "transformer", "prompt"])
