"""Several labels for a text: each is decided by itself, above a threshold of its own.

Read next: several_evaluation.py; ../labels/calibration.py, which keeps the thresholds.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.metrics.threshold import best_f1
from weft.nn.heads.head import Head, Loss
from weft.nn.kernels.linear import linear

USUAL = 0.5
"""The threshold of a label before `weft evaluate --calibrate`."""


class Independent(Head):
    """p_c = sigmoid(w_c h + b_c), for each of C labels.

    Args:
        in_size: D, features of h.
        num_classes: C.

    Example:
        >>> Independent(3, 5)(torch.zeros(2, 1, 3)).exp()[0, 0].tolist()
        [0.5, 0.5, 0.5, 0.5, 0.5]
    """

    def __init__(self, in_size: int, num_classes: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_classes))
        self.weight = nn.Parameter(torch.empty(num_classes, in_size))
        nn.init.normal_(self.weight, std=in_size**-0.5)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., C] in at least float32; those of a text do not sum to 1."""
        return F.logsigmoid(self._logits(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor) -> Loss:
        """Binary cross-entropies, summed over the labels of each text; targets [B, T, C] are 0 or 1."""
        logits = self._logits(h[mask])
        total = F.binary_cross_entropy_with_logits(logits, target[mask].to(logits), reduction="sum")
        return Loss(total, mask.sum())

    def best(self, h: Tensor, mask: Tensor) -> Tensor:
        """[B, T, C] bool: the labels with a probability of at least one half."""
        return self._logits(h) >= 0

    def _logits(self, h: Tensor) -> Tensor:
        logits = linear(h, self.weight, self.bias)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def nats(probs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[N] the loss of each text, from probabilities [N, C] and targets [N, C] of 0 or 1."""
    right = np.where(target > 0, probs, 1 - probs)
    found: np.ndarray = -np.log(np.maximum(right, 1e-30)).sum(-1)
    return found


def thresholds(probs: np.ndarray, target: np.ndarray) -> list[float]:
    """For each label the threshold with the highest F1; 0.5 for a label that no text has.

    Args:
        probs: [N, C] of validation texts.
        target: [N, C] their labels, 0 or 1.

    Example:
        >>> thresholds(np.array([[0.4, 0.2], [0.1, 0.3]]), np.array([[1, 0], [0, 0]]))
        [0.25, 0.5]
    """
    return [
        best_f1(column, there > 0).value if there.any() else USUAL
        for column, there in zip(probs.T, target.T, strict=True)
    ]
