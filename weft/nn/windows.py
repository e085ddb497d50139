"""The last n inputs at every position, the input of an n-gram network.

Read next: encoders/ngram.py, decoders/window.py.
"""

import torch
from torch import Tensor


def windows(x: Tensor, before: Tensor) -> Tensor:
    """Concatenate each input with the n - 1 inputs before it, the oldest first.

    Args:
        x: [B, T, D].
        before: [B, n - 1, D], the inputs before x.

    Returns:
        [B, T, n D].

    Example:
        >>> windows(torch.tensor([[[1.0], [2.0]]]), torch.zeros(1, 2, 1)).tolist()
        [[[0.0, 0.0, 1.0], [0.0, 1.0, 2.0]]]
    """
    return torch.cat([before, x], 1).unfold(1, before.shape[1] + 1, 1).transpose(2, 3).flatten(2)
