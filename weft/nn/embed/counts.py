"""GloVe: vectors whose dot products approximate the logarithms of co-occurrence counts."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.masks import to_device
from weft.nn.embed.subwords import WordTable
from weft.nn.heads.head import Loss


class Cells(NamedTuple):
    """Cells of the co-occurrence table."""

    words: Tensor  # [N] int64
    others: Tensor  # [N] int64
    counts: Tensor  # [N] X, positive
    target_tokens: int

    def to(self, device: torch.device) -> "Cells":
        """Move to a device."""
        return to_device(self, device)


class Glove(nn.Module):
    """f(X_ij) (w_i·w̃_j + b_i + b̃_j - log X_ij)²,  f(x) = min(1, (x / x_max)^α).

    Args:
        num_words: V.
        size: D.
        most: x_max.
        alpha: α.

    Source: Pennington et al. 2014, eq. 8 and 9; a word's vector is w + w̃ (their section 4.2).

    Example:
        >>> cells = Cells(torch.tensor([1]), torch.tensor([2]), torch.tensor([100.0]), 1)
        >>> loss = Glove(5, 3).loss(cells)
        >>> bool(loss.total > 0), int(loss.count)
        (True, 1)
    """

    def __init__(self, num_words: int, size: int, *, most: float = 100.0, alpha: float = 0.75) -> None:
        super().__init__()
        self.inner, self.outer = WordTable(num_words, size), WordTable(num_words, size)
        self.inner_bias, self.outer_bias = (WordTable(num_words, 1, zero=True) for _ in range(2))
        self.most, self.alpha = most, alpha

    def loss(self, batch: Cells) -> Loss:
        """Weighted squared error, summed; the count is the number of cells."""
        product = (self.inner(batch.words) * self.outer(batch.others)).sum(1)
        bias = self.inner_bias(batch.words)[:, 0] + self.outer_bias(batch.others)[:, 0]
        weight = (batch.counts / self.most).clamp(max=1) ** self.alpha
        total = (weight * (product + bias - batch.counts.log()).square()).sum()
        return Loss(total, total.new_full((), len(batch.words), dtype=torch.int64))

    def vectors(self) -> Tensor:
        """[V, D]."""
        return self.inner.table.weight + self.outer.table.weight

    def unseen(self, word: str) -> Tensor | None:
        """None: there are no vectors of unseen words."""
        return None
