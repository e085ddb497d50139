"""A decoder that attends to the source after each step, to copy its words.

Read next: ../heads/pointer.py, which mixes copying with the vocabulary's distribution.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.masks import harmless
from weft.nn.attention import Attention, Source, Weights, mixed, weights_of
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.heads.pointer import CopySource, PointerFeatures
from weft.nn.ops import Dropout, Linear
from weft.nn.scores import Additive, Score
from weft.probe import edited, exporting, record, watching
from weft.setting_types import DropoutRate, Size
from weft.tree import State, where

WRITES = partial(RecurrentDecoder, enters="never")


class PointerState(NamedTuple):
    """The state of a pointer decoder."""

    inner: State  # of the inner decoder
    covered: Tensor | None  # [N, S] c_t, the attention so far; None without coverage
    source: Source  # keys and values of the memory
    read: CopySource


class PointerDecoder(Decoder):
    """The state s_t of an inner decoder attends to the memory; attended words may be copied.

        e_i^t   = score(s_t, h_i),  with coverage  v^T tanh(W_h h_i + W_s s_t + w_c c_i^t + b)
        a^t     = softmax(e^t),  h*_t = sum_i a_i^t h_i,  c^t = sum_{t' < t} a^t'
        y_t     = W [s_t; h*_t] + b
        gate_t  = w_h* h*_t + w_s s_t + w_x x_t + b,  p_gen = sigma(gate_t)
        again_t = coverage * sum_i min(a_i^t, c_i^t)

    With other scores, c_i^t w_c is added to the prepared key of position i, which for the additive score is
    the equation above.

    Args:
        in_size: features of the input.
        encoder: its memory is read; it must keep every position of the source.
        decoder: computes s_t; by default a recurrent decoder without attention, as in the paper.
        score: compares s_t with the memory.
        key_size, value_size, shared, weights: of the attention; see `Attention`.
        coverage: λ, weight of the coverage loss; null disables coverage, and all steps run at once.
        readout: size of y_t; null for the size of s_t.
        dropout: on y_t.

    Raises:
        ConfigError: there is no encoder, it merges positions, the inner decoder copies, or coverage is
            negative.

    Source: See, Liu & Manning 2017, eq. 1 to 4, 8, 11 and 12.

    Example:
        >>> import torch
        >>> from weft.nn import RecurrentEncoder
        >>> encoder = RecurrentEncoder(5, sizes=(6,))
        >>> decoder = PointerDecoder(5, encoder)
        >>> memory = encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0)
        >>> y, state = decoder(torch.zeros(2, 3, 5), decoder.start(memory, 2))
        >>> y.weights.shape  # [B, T, S], from which words are copied
        torch.Size([2, 3, 7])
    """

    copies = True

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        decoder: Callable[[int, Encoder | None], Decoder] = WRITES,
        score: Callable[[int, int], Score] = Additive,
        key_size: Size | None = None,
        value_size: Size | None = None,
        shared: bool = False,
        weights: Weights = "softmax",
        coverage: float | None = 1.0,
        readout: int | None = None,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, encoder)
        if encoder is None:
            raise ConfigError("pointer: copies from a source, so the model needs an encoder")
        if encoder.stride != 1:
            raise ConfigError(
                f"pointer: the encoder merges {encoder.stride} positions into one, but copying needs each of "
                "them; use another encoder"
            )
        if coverage is not None and coverage < 0:
            raise ConfigError(f"coverage: expected 0 or more, or null for none, got {coverage}")
        self.decoder = decoder(in_size, encoder)
        if self.decoder.copies:
            raise ConfigError("pointer: the inner decoder copies too; use one that does not")
        self.reach = self.decoder.reach if coverage is None else None
        self.skips, self.weighted = self.decoder.skips, self.decoder.weighted
        size = self.decoder.size
        self.attention = Attention(
            score(size, key_size or encoder.size),
            encoder.size,
            key_size=key_size,
            value_size=value_size,
            shared=shared,
            weights=weights,
        )
        self.coverage = coverage
        if coverage is not None:
            with torch.no_grad():
                keys = self.attention.score.prepare(torch.zeros(1, 1, key_size or encoder.size))
            self.cover = nn.Parameter(torch.randn(keys.shape[2]) * keys.shape[2] ** -0.5)  # w_c
        self.size = readout or size
        self.readout = Linear(size + self.attention.size, self.size)
        self.gate = Linear(self.attention.size + size + in_size, 1)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory | None, rows: int) -> PointerState:
        """The inner decoder's initial state, zero coverage, and the memory's keys and values.

        Raises:
            ConfigError: there is no memory.
            ShapeError: the memory and the source differ in length.
        """
        if memory is None:
            raise ConfigError("pointer: expected the memory of a source to copy from, got none")
        if memory.read is not None and memory.read.shape != memory.mask.shape:
            raise ShapeError(
                f"pointer: expected source tokens of shape [B, S] = {list(memory.mask.shape)}, "
                f"got {list(memory.read.shape)}; the source must be text"
            )
        wide = torch.promote_types(memory.states.dtype, torch.float32)  # a sum over many steps
        covered = None if self.coverage is None else torch.zeros_like(memory.states[..., 0], dtype=wide)
        read = CopySource(None if memory.read is None else memory.read.masked_fill(~memory.mask, 0))
        return PointerState(self.decoder.start(memory, rows), covered, self.attention.prepare(memory), read)

    def forward(
        self, x: Tensor, state: PointerState, mask: Tensor | None = None
    ) -> tuple[PointerFeatures, PointerState]:
        """See Decoder.forward; with coverage, attention runs step by step after the inner decoder."""
        x = harmless(x, mask)
        s, inner = self.decoder(x, state.inner, mask)
        if state.covered is None:
            weights, again, covered = self._weights(s, state.source), None, None
        else:
            weights, again, covered = self._covering(s, state, mask)
        if watching():
            record("attention", weights)
        context = mixed(weights, state.source)
        y = self.dropout(self.readout(torch.cat([s, context], -1)))
        gate = self.gate(torch.cat([context, s, x.to(s.dtype)], -1))
        if watching():
            record("p_gen", gate.sigmoid())
        return PointerFeatures(y, gate, weights, again, state.read), state._replace(
            inner=inner, covered=covered
        )

    def _weights(self, s: Tensor, source: Source) -> Tensor:
        """a [N, T, S]."""
        folded = s.reshape(source.keys.shape[0], -1, s.shape[2])  # [B, W T, D]
        energy = self.attention.score(folded, source.keys)
        weights = weights_of(energy, source.mask[:, None], self.attention.weights)
        return edited("attention", weights.reshape(*s.shape[:2], -1))

    def _covering(self, s: Tensor, state: PointerState, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Attention a [N, T, S], coverage loss [N, T, 1] and the new coverage [N, S]."""
        covered, source = state.covered, state.source
        assert covered is not None and self.coverage is not None
        times = 1 if exporting() else s.shape[0] // source.keys.shape[0]
        keys, real = source.keys, source.mask
        if times > 1:
            keys, real = keys.repeat_interleave(times, 0), real.repeat_interleave(times, 0)
        every, again = [], []
        for t in range(s.shape[1]):
            shifted = keys + covered[..., None] * self.cover  # [N, S, A]
            energy = self.attention.score(s[:, t : t + 1], shifted.to(keys.dtype))
            weights = weights_of(energy, real[:, None], self.attention.weights)  # [N, 1, S]
            weights = edited("attention", weights)
            every.append(weights)
            again.append(torch.minimum(weights[:, 0].to(covered.dtype), covered).sum(1)[:, None, None])
            more = covered + weights[:, 0]
            covered = more if mask is None else where(mask[:, t], more, covered)
        return torch.cat(every, 1), self.coverage * torch.cat(again, 1), covered
