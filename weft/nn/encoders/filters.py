"""Convolution filters of several widths in parallel; each detects a pattern of neighbouring words.

Read next: encoder.py, whose ConvolutionEncoder stacks gated layers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Dropout
from weft.setting_types import Count, DropoutRate


class FilterEncoder(Encoder):
    """h_j = relu(W x_{j-l..j+r} + b) for each width l + r + 1, concatenated, in one or more layers.

    With widths 3, 4, 5, 100 features each, one layer and the pool `max` this is the network of Kim 2014.
    The ends are padded with zeros, so there are as many states as inputs.

    Args:
        in_size: features of the input.
        widths: filter widths.
        features: filters of each width; the memory's width is this times the number of widths.
        num_layers: number of layers.
        dropout: after every layer.

    Raises:
        ConfigError: there are no widths, or a number is below 1.

    Source: Kim 2014, section 2; Collobert et al. 2011, section 3.2.2.

    Example:
        >>> import torch
        >>> encoder = FilterEncoder(3, widths=(2, 3), features=5)
        >>> encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0).states.shape
        torch.Size([2, 7, 10])
    """

    def __init__(
        self,
        in_size: int,
        *,
        widths: tuple[int, ...] = (3, 4, 5),
        features: int = 100,
        num_layers: Count = 1,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size)
        if not widths or min(widths) < 1 or features < 1 or num_layers < 1:
            raise ConfigError(
                "widths: expected one or more of at least 1, such as [3, 4, 5], "
                f"got {list(widths)} with {features} features and {num_layers} layers"
            )
        self.widths = widths
        self.size = features * len(widths)
        self.layers = nn.ModuleList()
        for layer in range(num_layers):
            inside = in_size if layer == 0 else self.size
            self.layers.append(nn.ModuleList(nn.Conv1d(inside, features, width) for width in widths))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory; padding counts as zeros."""
        x, mask = self.check(x, mask)
        real = mask[..., None]
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleList)
            seen = x.masked_fill(~real, 0.0).transpose(-1, -2)  # [B, D_in, S]
            parts = [
                convolve(F.pad(seen, ((width - 1) // 2, width // 2)))
                for width, convolve in zip(self.widths, layer, strict=True)
            ]
            x = self.dropout(torch.cat(parts, 1).relu().transpose(-1, -2))
        return Memory(x, mask, masks.mean(x, mask))
