"""A Transformer encoder."""

from typing import Annotated

from torch import Tensor, nn

from weft import masks
from weft.nn.attention import USUAL, Heads
from weft.nn.distances import Distance, apart
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Linear, decoding
from weft.nn.positions import Positions, counted, distance_of, positions_of
from weft.nn.randomness import recomputed
from weft.nn.transformer import GELU_GATED, Activation, Norm, blocks_of, form_of
from weft.setting_types import Bounds, Count, DropoutRate, Size


class TransformerEncoder(Encoder):
    """Embeddings with positions, then Transformer blocks; the summary is the mean.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: D, the width.
        num_layers: number of blocks.
        num_heads: attention heads.
        inner: features of the feed-forward networks; 4 D by default.
        norm: before or after each sublayer, or parallel: before both, which read the same input.
        norm_kind: "layer" or "rms".
        norm_epsilon: of the norms.
        activation: of the feed-forward networks.
        bias: whether linear layers and LayerNorms have biases.
        positions: "sinusoidal" or "learned", added to the embeddings; "concatenated" with them; "rotary",
            "alibi" or "relative" inside attention; or "none".
        position_base: base of sinusoidal and rotary positions.
        max_length: number of learned positions.
        entry_norm: normalise the embeddings before the first block.
        dropout: on embeddings and sublayers.
        attention_dropout: on attention weights.
        heads: variants of self-attention: shared keys and values, another width, norms, biases.
        window: positions to each side that a block sees; None for all.
        window_base: base of rotary positions in blocks with a window; None for that of the others.
        global_every: with a window, every so many blocks see all positions, the first one too.
        first_norm: whether the input of the first block is normalised before its attention; after an
            entry_norm it need not be.

    Source: Vaswani et al. 2017; Warner et al. 2024 (ModernBERT) for the window.

    Example:
        >>> import torch
        >>> encoder = TransformerEncoder(5, size=6, num_layers=1, num_heads=2)
        >>> memory = encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0)
        >>> memory.states.shape, memory.summary.shape  # [B, S, D], [B, D]
        (torch.Size([2, 7, 6]), torch.Size([2, 6]))
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_layers: Count = 4,
        num_heads: Count = 4,
        inner: int | None = None,
        norm: Norm = "before",
        norm_kind: NormKind = "layer",
        norm_epsilon: float = 1e-5,
        activation: Activation = "relu",
        bias: bool = True,
        positions: Positions = "sinusoidal",
        position_base: float = 10000.0,
        max_length: int = 1024,
        entry_norm: bool = False,
        dropout: DropoutRate = 0.1,
        attention_dropout: DropoutRate = 0.0,
        heads: Heads = USUAL,
        window: Count | None = None,
        window_base: float | None = None,
        global_every: Annotated[int, Bounds(ge=1)] = 3,
        first_norm: bool = True,
    ) -> None:
        super().__init__(in_size)
        self.size = size
        self.num_heads = num_heads
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length, base=position_base)
        rotated = heads.rotated(size, num_heads)
        self.distance = distance_of(positions, rotated, num_heads, both_ways=True, base=position_base)
        self.window, self.global_every = window, global_every
        self.near: nn.Module | None = None  # of blocks with a window; None: as the others
        if window is not None and window_base is not None:
            self.near = distance_of(positions, rotated, num_heads, both_ways=True, base=window_base)
        # compiled code has the usual blocks only
        usual = norm != "parallel" and activation not in GELU_GATED and window is None and first_norm
        self.usual = usual and type(self.distance) is Distance and heads == USUAL
        self.entry_norm = norm_of(size, norm_kind, epsilon=norm_epsilon) if entry_norm else nn.Identity()
        self.dropout = Dropout(dropout)
        self.blocks, self.last_norm = blocks_of(
            size,
            num_layers,
            num_heads,
            inner,
            norm=norm,
            norm_kind=norm_kind,
            norm_epsilon=norm_epsilon,
            activation=activation,
            bias=bias,
            dropout=dropout,
            attention_dropout=attention_dropout,
            heads=heads,
        )
        if not first_norm and num_layers:
            self.blocks[0].attention_norm = nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        x = self.project(x)
        places = counted(0, x.shape[1], x)
        x = self.dropout(self.entry_norm(self.positions(x, places)))
        if not self.training and self.usual and decoding.suits_whole(x, self.num_heads):
            return self._compiled(x, mask)
        seen = None if masks.full(mask) else mask[:, None, None]  # [B, 1, 1, S]
        far = near = seen, self.distance(places, places, x)
        if self.window is not None:
            inside = apart(places, places, x).abs()[:, None] <= self.window  # [1, 1, S, S]
            distance = self.near or self.distance
            near = inside if seen is None else seen & inside, distance(places, places, x)
        for number, block in enumerate(self.blocks):
            x = recomputed(block.encode, x, *(near if number % self.global_every else far))
        x = self.last_norm(x)
        return Memory(x, mask, masks.mean(x, mask))

    def _compiled(self, x: Tensor, mask: Tensor) -> Memory:
        """All blocks in one compiled call."""
        form, parts = form_of(self.blocks, self.num_heads), [block.parts() for block in self.blocks]
        full = masks.full(mask)
        x = decoding.whole(self, form, parts, self.last_norm, x, None if full else mask)
        return Memory(x, mask, x.mean(1) if full else masks.mean(x, mask))
