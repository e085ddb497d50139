"""A Transformer encoder."""

from torch import Tensor, nn

from weft import masks
from weft.nn.attention import USUAL, Heads
from weft.nn.distances import Distance
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Linear, decoding
from weft.nn.positions import Positions, counted, distance_of, positions_of
from weft.nn.recompute import recomputed
from weft.nn.transformer import Activation, Norm, blocks_of, form_of
from weft.setting_types import Count, DropoutRate, Size


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

    Source: Vaswani et al. 2017.

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
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.size = size
        self.num_heads = num_heads
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length, base=position_base)
        self.distance = distance_of(
            positions, heads.rotated(size, num_heads), num_heads, both_ways=True, base=position_base
        )
        # compiled code has the usual blocks only
        usual = norm != "parallel" and activation != "geglu"
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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory."""
        x, mask = self.check(x, mask)
        x = self.project(x)
        places = counted(0, x.shape[1], x)
        x = self.dropout(self.entry_norm(self.positions(x, places)))
        if not self.training and self.usual and decoding.suits_whole(x, self.num_heads):
            return self._compiled(x, mask)
        seen = None if masks.full(mask) else mask[:, None, None]  # [B, 1, 1, S]
        order = self.distance(places, places, x)
        for block in self.blocks:
            x = recomputed(block.encode, x, seen, order)
        x = self.last_norm(x)
        return Memory(x, mask, masks.mean(x, mask))

    def _compiled(self, x: Tensor, mask: Tensor) -> Memory:
        """All blocks in one compiled call."""
        form, parts = form_of(self.blocks, self.num_heads), [block.parts() for block in self.blocks]
        full = masks.full(mask)
        x = decoding.whole(self, form, parts, self.last_norm, x, None if full else mask)
        return Memory(x, mask, x.mean(1) if full else masks.mean(x, mask))
