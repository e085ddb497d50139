"""Append a fixed number per token, such as its idf, to its vector. Read next: ../decoders/bag.py."""

import torch
from torch import Tensor, nn


class Beside(nn.Module):
    """[E(w); a_w].

    Args:
        embed: tokens [B, S] to [B, S, D].
        weights: [V] a, constants.

    Example:
        >>> import torch
        >>> made = Beside(torch.nn.Embedding(3, 2), torch.tensor([0.5, 1.5, 2.5]))
        >>> made(torch.tensor([[2, 0]]))[..., -1].tolist()
        [[2.5, 0.5]]
    """

    weights: Tensor

    def __init__(self, embed: nn.Module, weights: Tensor) -> None:
        super().__init__()
        self.embed = embed
        self.register_buffer("weights", weights.clone())

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] int64 to [B, S, D + 1]."""
        x = self.embed(tokens)
        return torch.cat([x, self.weights[tokens][..., None].to(x.dtype)], -1)
