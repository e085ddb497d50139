"""A Transformer encoder: every position looks at every other."""

from torch import Tensor, nn

from weft import masks
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.nn.positions import Positions, positions_of
from weft.nn.transformer import Activation, Block, Norm


class TransformerEncoder(Encoder):
    """Embeddings plus positions, then blocks; the summary is the mean.

    Args:
        in_size: features of the input; projected where they differ from the width.
        size: D, the width.
        num_layers: blocks.
        num_heads: heads of each attention.
        inner: features of the feed-forward networks; 4 D by default.
        norm: LayerNorm before or after each sublayer.
        activation: of the feed-forward networks.
        positions: "sinusoidal" or "learned".
        max_length: positions that are learned.
        dropout: on embeddings and sublayers.
        attention_dropout: on attention weights.

    Source: Vaswani et al. 2017.
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: int = 256,
        num_layers: int = 4,
        num_heads: int = 4,
        inner: int | None = None,
        norm: Norm = "before",
        activation: Activation = "relu",
        positions: Positions = "sinusoidal",
        max_length: int = 1024,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.size = size
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(
                size,
                num_heads,
                inner or 4 * size,
                norm=norm,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(num_layers)
        )
        self.last_norm = nn.LayerNorm(size) if norm == "before" else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory."""
        x = self.project(x)
        x = self.dropout(self.positions(x, range(x.shape[1])))
        seen = None if bool(mask.all()) else mask[:, None, None]  # [B, 1, 1, S]
        for block in self.blocks:
            x = block.encode(x, seen)
        x = self.last_norm(x)
        return Memory(x, mask, masks.mean(x, mask))
