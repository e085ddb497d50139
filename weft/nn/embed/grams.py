"""Weighted items, such as words and word pairs of a text, each of which adds to the logit of every class.

With a BagEncoder (sum) and a head with only a bias this is a linear classifier.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.masks import fill, to_device


class Grams(NamedTuple):
    """The items of texts and their weights."""

    numbers: Tensor  # [B, S] int64
    weights: Tensor  # [B, S] presence, count or relative frequency

    def to(self, device: torch.device) -> "Grams":
        """Move to a device."""
        return to_device(self, device)

    def filled(self, columns: int) -> "Grams":
        """The same items, and more of weight 0."""
        numbers, weights = (fill(part, len(part), columns) for part in self)
        return Grams(numbers, weights)


class GramTable(nn.Module):
    """x_i r_ic w_ic for each item i and class c, with learned w.

    With r = 1 and initial w = 0 this is logistic regression. With r_ic = log p(i | c) minus its mean over
    classes (set by `begin`) and initial w = 1 it is naive Bayes before training, and similar to NB-SVM
    afterwards.

    Source: Wang & Manning 2012, section 2.3, for two classes and an SVM's loss.
    """

    def __init__(self, num_items: int, num_classes: int, *, naive_bayes: bool = False) -> None:
        super().__init__()
        self.size = num_classes
        start = torch.ones if naive_bayes else torch.zeros
        self.weight = nn.Parameter(start(num_items, num_classes))
        self.register_buffer("ratios", torch.ones(num_items, num_classes) if naive_bayes else None)

    def begin(self, logp: Tensor) -> None:
        """Set r to log p(i | c), [V, C], minus its mean over classes, which does not affect the softmax."""
        self.get_buffer("ratios").copy_(logp - logp.mean(1, keepdim=True))

    def forward(self, given: Grams) -> Tensor:
        """Items [B, S] to [B, S, C]."""
        out = self.weight[given.numbers]
        if self.ratios is not None:
            out = out * self.get_buffer("ratios")[given.numbers]
        return out * given.weights[..., None].to(out.dtype)


class FeatureTable(nn.Module):
    """sum_k w_{f_k, c} over the features f_k of each word, for each tag c, with learned w.

    Feature 0 is padding, which weighs nothing: features [B, S, K] give [B, S, C].
    """

    ratios = None

    def __init__(self, num_features: int, num_tags: int) -> None:
        super().__init__()
        self.size = num_tags
        self.weight = nn.Parameter(torch.zeros(num_features, num_tags))

    def forward(self, numbers: Tensor) -> Tensor:
        """Features [B, S, K] to [B, S, C]."""
        flat = F.embedding_bag(numbers.flatten(0, 1), self.weight, mode="sum", padding_idx=0)
        return flat.view(*numbers.shape[:2], self.size)
