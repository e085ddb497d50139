"""The one linear product of the package: cells, attention, feed-forward and output layers all call it.

A faster product (another library, a packed weight) enters here and nowhere else.
Read next: lstm.py, cross_entropy.py.
"""

import torch.nn.functional as F
from torch import Tensor, nn


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b for x [..., I], weight [O, I], bias [O]; gives [..., O]."""
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """torch.nn.Linear whose product is `linear`; same parameters, same state_dict."""

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] to [..., out_features]."""
        return linear(x, self.weight, self.bias)
