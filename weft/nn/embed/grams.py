"""Weighted items, such as the words and word pairs of a text: each adds to the logit of every class.

With encoders/bag.py (sum) behind it and a head that adds nothing but a bias it is a linear classifier.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Grams(NamedTuple):
    """The items of texts and how much each counts."""

    numbers: Tensor  # [B, S] int64
    weights: Tensor  # [B, S] presence, count or relative frequency

    def to(self, device: torch.device) -> "Grams":
        """The same on a device."""
        return Grams(self.numbers.to(device), self.weights.to(device))


class GramTable(nn.Module):
    """x_i r_ic w_ic for each item i and class c; w is learnt.

    With r = 1 and w from 0 it is logistic regression. With r_ic = log p(i | c) less its mean over classes
    and w from 1 it is naive Bayes before anything is learnt, and after that close to NB-SVM.

    Args:
        num_items: V.
        num_classes: C.
        naive_bayes: whether w begins at 1 and r is to come from `begin`.

    Source: Wang & Manning 2012, section 2.3, for two classes and an SVM's loss.

    Example:
        >>> GramTable(5, 3)(Grams(torch.tensor([[1, 4]]), torch.ones(1, 2))).shape
        torch.Size([1, 2, 3])
    """

    def __init__(self, num_items: int, num_classes: int, *, naive_bayes: bool = False) -> None:
        super().__init__()
        self.size = num_classes
        start = torch.ones if naive_bayes else torch.zeros
        self.weight = nn.Parameter(start(num_items, num_classes))
        self.register_buffer("ratios", torch.ones(num_items, num_classes) if naive_bayes else None)

    def begin(self, logp: Tensor) -> None:
        """Take log p(i | c), [V, C], as r, less its mean over classes, which no softmax sees."""
        self.get_buffer("ratios").copy_(logp - logp.mean(1, keepdim=True))

    def forward(self, given: Grams) -> Tensor:
        """Items [B, S] to [B, S, C]."""
        out = self.weight[given.numbers]
        if self.ratios is not None:
            out = out * self.get_buffer("ratios")[given.numbers]
        return out * given.weights[..., None].to(out.dtype)
