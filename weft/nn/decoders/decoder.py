"""The contract of a decoder: one step at a time, from a state to the next state.

Two decoders without recurrence are here too: one reads a bag of its earlier inputs, one its last n inputs.
Read next: recurrent.py, transformer.py; ../../search/beam.py, which calls it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.masks import harmless
from weft.native import WholeStep
from weft.nn.attention import Attention, Source
from weft.nn.border import Explained, check_mask, check_state, check_tensor, weight_of
from weft.nn.cells.convolution import last_inputs
from weft.nn.encoders.encoder import Encoder, Memory, check_memory, windows
from weft.nn.ops import Dropout, Ends, Linear
from weft.nn.scores import Additive, Dot, Score
from weft.probe import record
from weft.setting_types import DropoutRate, Size
from weft.shapes import check_choice
from weft.tree import State


class Decoder(Explained, nn.Module, ABC):
    """Turns embedded tokens into features for the head, using the memory of a source if there is one.

    Attributes:
        in_size: features of the embedded tokens.
        memory_size: width of the memory that it reads; None without one.
        size: D, the width of its output.
        reach: number of inputs it uses, including the current one; None for all.
        skips: number of initial inputs, such as the line end before a text, used only as the current input.
        weighted: whether the last feature of its input is a weight of the token, such as its idf.
        copies: whether its output is for a head that copies from the source (pointer.py).
        converts: whether it converts a memory of another dtype to that of its weights.

    Example:
        >>> import torch
        >>> from weft.nn import RecurrentDecoder
        >>> decoder = RecurrentDecoder(5, sizes=(6,))
        >>> state = decoder.start(None, 2)
        >>> y, state = decoder(torch.zeros(2, 1, 5), state)  # T = 1 is one step
        >>> y.shape  # [B, T, D]
        torch.Size([2, 1, 6])
    """

    checks: ClassVar[Mapping[str, str]] = {"forward": "check_inputs", "start": "check_start"}
    checks_first: ClassVar[tuple[str, ...]] = ("start",)
    returns: ClassVar[Mapping[str, str | type]] = {"start": "state", "forward": "tensor, state"}
    in_size: int
    memory_size: int | None
    size: int
    reach: int | None = None
    skips: int = 0
    weighted: bool = False
    converts: bool = False
    copies: bool = False

    def __init__(self, in_size: int = 0, encoder: Encoder | None = None) -> None:
        super().__init__()
        if in_size:
            self.in_size = in_size
        self.memory_size = None if encoder is None else encoder.size

    @abstractmethod
    def start(self, memory: Memory | None, rows: int) -> State:
        """The initial state for `rows` rows, those of the memory if there is one."""

    @abstractmethod
    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Any, State]:
        """Run T >= 1 steps; T steps at once give the same as T single steps.

        Args:
            x: [B, T, D_in] embedded tokens.
            state: from `start` or an earlier call.
            mask: [B, T] bool, real positions first; where False the state does not change.

        Returns:
            y: [B, T, D], or a tree of [B, T, ..] if it copies; and the state after the last real position.
        """

    def check_inputs(self, x: Tensor, state: State, mask: Tensor | None = None) -> None:
        """Check the inputs of `forward`."""
        name = type(self).__name__
        check_tensor(name, "x", x, ("rows", "steps", self.in_size), weight_of(self))
        check_state(name, state, len(x), "start(memory, rows)")
        if mask is not None:
            check_mask(name, mask, x)

    def check_start(self, memory: Memory | None, rows: int) -> None:
        """Check the inputs of `start`."""
        if memory is None and self.memory_size is None:
            return
        name = type(self).__name__
        check_memory(name, memory, self.memory_size, None if self.converts else weight_of(self))
        if memory is not None and len(memory.states) != rows:
            raise ShapeError(f"{name}: expected a memory of {rows} rows, got {len(memory.states)}")

    def whole_step(self, state: State, ends: Ends) -> WholeStep | None:
        """A search step from token to log-probabilities in compiled code; None if this decoder has none now.

        Args:
            state: the state before the first step, one row per source; stays as it is.
            ends: what stands before and after the decoder, and the size of the search.
        """
        return None

    def fixed(self, state: State, width: int, steps: int) -> tuple[State, int] | None:
        """As `fixed` of a model; this one serves a decoder whose steps change no shape of the state."""
        return state, steps


Weights = Literal["sum", "mean", "position", "idf", "dot", "additive"]


class BagState(NamedTuple):
    """The state of a bag decoder."""

    past: Tensor  # [N, P, D_in] the inputs so far
    real: Tensor  # [N, P] bool
    given: Tensor | None  # [N, D] V s, from the source's summary


class BagDecoder(Decoder):
    """y_t = [x_t; A(x_1 .. x_{t-1})]: a bigram, and a weighted sum of the words before it.

    With E(w_{i-1}) = x_t, the head's softmax(C y_t + b) is softmax(C [E(w_{i-1}); A(w_1 .. w_{i-2})]).
    x_0 is the line end before the first word; it is not a word, so it is never in the bag. A is 0 for an
    empty bag.

    sum:      A = sum_j x_j                       mean:     A = (1/n) sum_j x_j
    position: A = sum_j a_{t-j} x_j, a learned    idf:      A = (1/n) sum_j idf_j x_j
    dot:      A = sum_j softmax_j(x_t . x_j) x_j
    additive: A = sum_j softmax_j(w . tanh(W [x_t; x_j] + b)) x_j

    Args:
        in_size: features of the input; with idf the last one is the token's weight.
        encoder: its summary s is added to the output as V s + c; None for no encoder.
        weights: see above.
        max_length: number of distances with learned weights; more distant words share the last one.
        dropout: on the output.

    Raises:
        ConfigError: the input has no feature besides the weight, or max_length is below 1.

    Example:
        >>> import torch
        >>> bag = BagDecoder(1, weights="sum")
        >>> x = torch.tensor([[[9.0], [1.0], [2.0], [4.0]]])
        >>> bag(x, bag.start(None, 1))[0][0].tolist()
        [[9.0, 0.0], [1.0, 0.0], [2.0, 1.0], [4.0, 3.0]]
    """

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        weights: Weights = "mean",
        max_length: int = 64,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, encoder)
        check_choice("weights", weights, Weights)
        self.skips = 1
        self.weights = weights
        self.weighted = weights == "idf"
        size = in_size - self.weighted
        if size < 1 or max_length < 1:
            raise ConfigError(
                f"expected in_size and max_length of at least 1, got {in_size} and {max_length}"
            )
        self.distances = nn.Parameter(1 / torch.arange(1, max_length + 1)) if weights == "position" else None
        self.score: Score | None = None
        if weights in ("dot", "additive"):
            self.score = Dot(size, size) if weights == "dot" else Additive(size, size)
        self.given = None if encoder is None else Linear(encoder.size, size)
        self.size = 2 * size if encoder is None else 3 * size
        self.like: Tensor
        self.register_buffer("like", torch.zeros(1), persistent=False)  # gives device and dtype
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory | None, rows: int) -> BagState:
        """An empty bag and the memory's summary."""
        past = self.like.new_zeros(rows, 0, self.in_size)
        real = torch.ones(rows, 0, dtype=torch.bool, device=self.like.device)
        given = None if memory is None or self.given is None else self.given(memory.summary)
        return BagState(past, real, given)

    def forward(self, x: Tensor, state: BagState, mask: Tensor | None = None) -> tuple[Tensor, BagState]:
        x = harmless(x, mask)
        rows, steps, _ = x.shape
        new = torch.ones(rows, steps, dtype=torch.bool, device=x.device) if mask is None else mask
        seen, real = torch.cat([state.past.to(x.dtype), x], 1), torch.cat([state.real, new], 1)
        place = real.cumsum(1) - 1  # [N, P + T] index of each real input, not counting padding
        distance = place[:, -steps:, None] - place[:, None]  # [N, T, P + T]
        words = (real & (place >= self.skips))[:, None] & (distance > 0)
        size = x.shape[2] - self.weighted
        vectors, query = seen[..., :size], x[..., :size]
        share = self._shares(query, vectors, seen[..., -1], words, distance)
        record("attention", share)
        parts = [query, share @ vectors]
        if state.given is not None:
            parts.append(state.given[:, None].expand(-1, steps, -1))
        return self.dropout(torch.cat(parts, -1)), BagState(seen, real, state.given)

    def _shares(self, query: Tensor, vectors: Tensor, idf: Tensor, words: Tensor, distance: Tensor) -> Tensor:
        """The weight of each word in each step's bag, [N, T, P + T]."""
        if self.score is not None:
            energy = self.score(query, self.score.prepare(vectors))
            # If all are masked, equal shares times zero avoid NaN.
            share = energy.masked_fill(~words, torch.finfo(energy.dtype).min).softmax(-1)
            return share * words
        share = words.to(query.dtype)
        if self.distances is not None:
            return share * self.distances[distance.clamp(1, len(self.distances)) - 1]
        if self.weights == "sum":
            return share
        share = share / share.sum(-1, keepdim=True).clamp(min=1)
        return share * idf[:, None] if self.weighted else share


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
