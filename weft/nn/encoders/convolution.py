"""A convolutional encoder; each layer extends the context by some neighbours."""

import math
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Dropout, Linear
from weft.nn.positions import counted, positions_of
from weft.setting_types import Count, DropoutRate, Size
from weft.shapes import check_choice

EntryPositions = Literal["sinusoidal", "concatenated", "learned", "none"]


class ConvolutionEncoder(Encoder):
    """x + (a * sigmoid(b)) with [a; b] = conv(x), times sqrt(1/2), in each layer; the summary is the mean.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: D, the width.
        num_layers: L; with kernel k the context is L (k - 1) + 1 positions.
        kernel: k, odd and centred.
        positions: added to the embeddings or concatenated with them.
        max_length: number of learned positions.
        dropout: on embeddings and before each convolution.

    Raises:
        ConfigError: the kernel is even.

    Source: Gehring et al. 2017, section 3. Our default positions are sinusoidal, theirs `learned`; and
    attention uses the states without adding the embeddings (their eq. 2).

    Example:
        >>> import torch
        >>> encoder = ConvolutionEncoder(3, size=8, num_layers=2)
        >>> encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0).states.shape
        torch.Size([2, 7, 8])
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_layers: Count = 4,
        kernel: int = 3,
        positions: EntryPositions = "sinusoidal",
        max_length: int = 1024,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__(in_size)
        check_choice("positions", positions, EntryPositions)
        if kernel < 1 or kernel % 2 == 0:
            raise ConfigError(f"kernel: expected an odd number of positions such as 3 or 5, got {kernel}")
        self.size = size
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.Conv1d(size, 2 * size, kernel, padding=kernel // 2) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        real = mask[..., None]
        x = self.positions(self.project(x), counted(0, x.shape[1], x))
        x = self.dropout(x).masked_fill(~real, 0.0)
        for layer in self.layers:
            h = F.glu(layer(self.dropout(x).transpose(-1, -2)).transpose(-1, -2), -1)
            x = ((x + h) * math.sqrt(0.5)).masked_fill(~real, 0.0)
        return Memory(x, mask, masks.mean(x, mask))
