"""A decoder that uses only its last n inputs (Bengio 2003)."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.masks import harmless
from weft.nn.attention import Attention, Source
from weft.nn.cells.convolution import last_inputs
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.encoders.ngram import windows
from weft.nn.ops import Dropout, Linear
from weft.nn.scores import Additive, Score
from weft.setting_types import DropoutRate, Size
from weft.shapes import check_choice

LooksBack = Literal["late", "never"]


class WindowState(NamedTuple):
    """The state of a window decoder."""

    window: Tensor  # [N, (n - 1) D] the last inputs, the oldest first
    given: Tensor | None  # [N, H] U s, from the source's summary
    source: Source | None  # keys and values of the memory


class WindowDecoder(Decoder):
    """h_t = tanh(W [x_{t-n+1}; ..; x_t] + U s + b), with the memory's summary s if there is one.

    late:  out = attention(h_t), output tanh(W' [h_t; out] + b')
    never: only the summary represents the source

    Args:
        in_size: features of the input.
        encoder: its memory is read; None for an n-gram language model.
        length: n, number of inputs including the current one.
        size: H, width of h and of the output.
        score: compares h with the memory.
        enters: see above.
        direct: output [h_t; the window], which connects inputs directly to the head.
        dropout: on the output.

    Raises:
        ConfigError: n is below 1.

    Source: Bengio et al. 2003, section 2, y = b + W x + U tanh(d + H x), where `direct` gives the W x;
    Rush, Chopra & Weston 2015 for attention to a source.

    Example:
        >>> import torch
        >>> decoder = WindowDecoder(5, length=3, size=6)  # a 3-gram network
        >>> y, state = decoder(torch.zeros(2, 4, 5), decoder.start(None, 2))
        >>> y.shape  # [B, T, D]
        torch.Size([2, 4, 6])
    """

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        length: int = 5,
        size: Size = 256,
        score: Callable[[int, int], Score] = Additive,
        enters: LooksBack = "late",
        direct: bool = False,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, encoder)
        check_choice("enters", enters, LooksBack)
        if length < 1:
            raise ConfigError(f"length: expected a window of at least 1 position, got {length}")
        self.reach = self.length = length
        self.direct = direct
        self.size = size + (length * in_size if direct else 0)
        self.hidden = Linear(length * in_size, size)
        self.given = None if encoder is None else Linear(encoder.size, size, bias=False)
        self.attention, self.readout = None, None
        if encoder is not None and enters == "late":
            self.attention = Attention(score(size, encoder.size), encoder.size)
            self.readout = Linear(size + self.attention.size, size)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory | None, rows: int) -> WindowState:
        """Zeros before the first input, and the memory's keys and values."""
        width = self.hidden.in_features // self.length * (self.length - 1)
        window = self.hidden.weight.new_zeros(rows, width)
        given = None if memory is None or self.given is None else self.given(memory.summary)
        source = None if memory is None or self.attention is None else self.attention.prepare(memory)
        return WindowState(window, given, source)

    def forward(
        self, x: Tensor, state: WindowState, mask: Tensor | None = None
    ) -> tuple[Tensor, WindowState]:
        x = harmless(x, mask)
        before = state.window.view(x.shape[0], self.length - 1, x.shape[2]) if self.length > 1 else x[:, :0]
        seen = windows(x, before)  # [N, T, n D]
        h = self.hidden(seen)
        h = torch.tanh(h if state.given is None else h + state.given[:, None])
        if self.attention is not None and state.source is not None:
            h = torch.tanh(self.readout(torch.cat([h, self.attention(h, state.source)], -1)))
        y = torch.cat([h, seen], -1) if self.direct else h
        window = last_inputs(torch.cat([before, x.to(before.dtype)], 1), self.length - 1, mask)
        return self.dropout(y), state._replace(window=window.flatten(1))
