"""Convolutions that shorten a sequence, then a Transformer; for speech, which has many similar frames."""

from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.ops import Linear
from weft.nn.positions import Positions
from weft.setting_types import Count, DropoutRate, Size


class StridedTransformer(Encoder):
    """x <- relu(conv(x)) with kernel 3 and stride 2, repeated, then the blocks of a Transformer.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: D, the width.
        num_convolutions: number of convolutions; each halves the length.
        num_layers: number of blocks.
        num_heads: attention heads.
        inner: features of the feed-forward networks; 4 D by default.
        positions: as in TransformerEncoder.
        max_length: number of learned positions.
        dropout: on embeddings and sublayers.

    Raises:
        ConfigError: num_convolutions is negative.

    Source: the front end of Dong, Xu & Xu 2018 (Speech-Transformer), section 3.3, over time only.

    Example:
        >>> import torch
        >>> encoder = StridedTransformer(3, size=8, num_layers=1)
        >>> encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0).states.shape
        torch.Size([2, 2, 8])
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_convolutions: Count = 2,
        num_layers: Count = 4,
        num_heads: Count = 4,
        inner: int | None = None,
        positions: Positions = "sinusoidal",
        max_length: int = 1024,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__(in_size)
        if num_convolutions < 0:
            raise ConfigError(f"num_convolutions: expected 0 or more, got {num_convolutions}")
        self.size = size
        self.stride = 2**num_convolutions
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, size, 3, stride=2, padding=1) for _ in range(num_convolutions)
        )
        self.encoder = TransformerEncoder(
            size,
            size=size,
            num_layers=num_layers,
            num_heads=num_heads,
            inner=inner,
            positions=positions,
            max_length=max_length,
            dropout=dropout,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory of ceil(S / stride) positions."""
        x, mask = self.check(x, mask)
        x = self.project(x)
        for convolution in self.convolutions:
            x = convolution(x.masked_fill(~mask[..., None], 0.0).transpose(-1, -2)).relu().transpose(-1, -2)
            mask = masks.strided(mask, 2)
        memory: Memory = self.encoder(x, mask)
        return memory
