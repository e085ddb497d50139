"""n-grams of embeddings: each position with the ones before it."""

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Linear
from weft.setting_types import Size


class NgramEncoder(Encoder):
    """States [x_{t-n+1}; ..; x_t], or tanh(W [x_{t-n+1}; ..; x_t] + b); the summary is the last state.

    Positions before the first are zeros.

    Args:
        in_size: features of the input.
        length: n.
        size: width of tanh(W [..] + b); None keeps the concatenated embeddings, of width n times in_size.

    Raises:
        ConfigError: n is below 1.

    Source: Bengio et al. 2003, section 2 (its x and hidden layer), here as an encoder.

    Example:
        >>> import torch
        >>> x, mask = torch.tensor([[[1.0], [2.0], [3.0]]]), torch.ones(1, 3) > 0
        >>> NgramEncoder(1, length=2)(x, mask).states.tolist()
        [[[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]]
    """

    def __init__(self, in_size: int, *, length: int = 3, size: Size | None = None) -> None:
        super().__init__(in_size)
        if length < 1:
            raise ConfigError(f"length: expected a window of at least 1 position, got {length}")
        self.length = length
        self.size = size or length * in_size
        self.hidden = nn.Sequential(Linear(length * in_size, size), nn.Tanh()) if size else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        states = self.hidden(windows(x, x.new_zeros(x.shape[0], self.length - 1, x.shape[2])))
        return Memory(states, mask, masks.last(states, mask))


def windows(x: Tensor, before: Tensor) -> Tensor:
    """x [B, T, D] with the n - 1 inputs before each, oldest first: [B, T, n D]; `before` is [B, n - 1, D]."""
    return torch.cat([before, x], 1).unfold(1, before.shape[1] + 1, 1).transpose(2, 3).flatten(2)
