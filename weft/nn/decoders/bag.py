"""A decoder that uses its last input, and earlier inputs as a bag of words."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import harmless
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Dropout, Linear
from weft.nn.scores import Additive, Dot, Score
from weft.probe import record
from weft.setting_types import DropoutRate
from weft.shapes import check_choice

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
