"""Weft itself: `Generator`, its own update (weft.train.update) and its own greedy and beam search.

The Transformer normalises before its sublayers, the RNN is OpenNMT-py's: additive attention read by the
new state, tanh(W [h; context]) fed into the next step and read by the tied output layer, dropout on that
alone. The hybrid has the Transformer's encoder, two SSRUs that write (Kim et al. 2019), and scaled attention.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from peers.engine import (
    BETAS,
    CLIP_NORM,
    EOS,
    PAD,
    PEAK_RATE,
    SMOOTHING,
    SOS,
    Batch,
    Engine,
    Sizes,
    learning_rate,
)
from weft.machine import keep_memory
from weft.models import Generator
from weft.nn.cells.ssru import SSRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.scores.additive import Additive
from weft.nn.scores.scaled import ScaledDot
from weft.search.beam import beam
from weft.search.greedy import greedy
from weft.search.hypotheses import to_lists
from weft.tasks.shared.writing.searching import rounded
from weft.train.optimisers.adam import Adam
from weft.train.position import Group, Position
from weft.train.settings import Settings
from weft.train.update import update


class Pairs(NamedTuple):
    """A batch as weft.models.SequencePair wants it."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    target_tokens: int

    def to(self, device: torch.device) -> "Pairs":
        return self


class OneBatch:
    """As much of a training as `update` asks for: the batch at hand."""

    streams = False

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def collate(self, numbers: np.ndarray) -> Pairs:
        source, target = torch.from_numpy(self.batch.source), torch.from_numpy(self.batch.target)
        out = target[:, 1:]
        return Pairs(source, source != PAD, target[:, :-1], out, out != PAD, self.batch.target_tokens)


class Weft(Engine):
    """weft.models.Generator."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if dtype not in ("float32", "bfloat16"):
            raise ValueError(f"weft: {dtype} came; float32 or bfloat16")
        keep_memory()  # as the command line settles it
        self.model = {"transformer": _transformer, "rnn": _rnn, "hybrid": _hybrid}[sizes.model](sizes)
        adam = Adam(lr=PEAK_RATE, betas=BETAS)
        self.settings = Settings(
            optimiser=adam, clip_norm=CLIP_NORM, precision=dtype, device="cpu", max_updates=1
        )
        self.bfloat16 = dtype == "bfloat16"
        self.optimiser = self.settings.optimiser.build(self.model)
        self.updates = 0
        self.rounded = (-1, self.model)

    def update(self, batch: Batch) -> float:
        self.model.train()
        group = Group(0, self.updates, [np.arange(len(batch.source))], 1, 1, 0)
        position = Position(update=self.updates)
        self.updates += 1
        factor = learning_rate(self.updates) / PEAK_RATE
        taken = update(OneBatch(batch), self.model, self.optimiser, group, position, factor, self.settings)
        return taken.total / taken.count

    @torch.inference_mode()
    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        model = self.model.eval()
        if self.bfloat16:  # weights are rounded once, as `decoding.precision: bfloat16` does
            if self.rounded[0] != self.updates:
                self.rounded = (self.updates, rounded(model, "bfloat16"))
            model = self.rounded[1]
        ids = torch.from_numpy(source)
        forced = shortest == longest
        limits = {"eos": EOS, "max_length": longest, "banned": (EOS,) if forced else ()}
        state, first = model.start(ids, ids != PAD), torch.full((len(ids),), SOS)
        if width == 1:
            found = greedy(model.step, state, first, **limits)
        else:
            found = beam(model.step, state, first, width=width, **limits)
        return [row[0] for row in to_lists(found, EOS)]


def _transformer(sizes: Sizes) -> Generator:
    embed = Tokens(sizes.vocabulary, sizes.width)
    own = {
        "size": sizes.width,
        "num_layers": sizes.layers,
        "num_heads": sizes.heads,
        "inner": sizes.inner,
        "dropout": sizes.dropout,
    }
    encoder = TransformerEncoder(sizes.width, **own)
    decoder = TransformerDecoder(sizes.width, encoder, **own)
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)


def _hybrid(sizes: Sizes) -> Generator:
    embed = Tokens(sizes.vocabulary, sizes.width)
    encoder = TransformerEncoder(
        sizes.width,
        size=sizes.width,
        num_layers=sizes.layers,
        num_heads=sizes.heads,
        inner=sizes.inner,
        dropout=sizes.dropout,
    )
    decoder = RecurrentDecoder(
        sizes.width,
        encoder,
        sizes=(sizes.width,) * 2,
        cell=SSRU,
        score=ScaledDot,
        enters="late",
        dropout=sizes.dropout,
    )
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)


def _rnn(sizes: Sizes) -> Generator:
    width = sizes.recurrent
    embed = Tokens(sizes.vocabulary, width)
    encoder = RecurrentEncoder(width, sizes=(width // 2,), bidirectional=True)
    decoder = RecurrentDecoder(
        width,
        encoder,
        sizes=(width,),
        score=Additive,
        enters="late",
        input_feeding=True,
        dropout=sizes.dropout,
    )
    head = Categorical(decoder.size, sizes.vocabulary, smoothing=SMOOTHING, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)
