"""The heads of a classifier whose texts have several labels, or whose classes have subclasses.

Several labels are each decided alone, above a threshold of their own. A class with subclasses has the
probability of all of them, so that a text of a rare kind does not have to look like all others of its class.
Read next: ../../nn/heads/categorical.py, the usual head; ../labels/calibration.py, the thresholds.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import DataError
from weft.metrics.threshold import best_f1
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import linear

USUAL = 0.5
"""The threshold of a label before `weft evaluate --calibrate`."""


class MultiLabelHead(Head):
    """p_c = sigmoid(w_c h + b_c), for each of C labels.

    Args:
        in_size: D, features of h.
        num_classes: C.

    Example:
        >>> MultiLabelHead(3, 5)(torch.zeros(2, 1, 3)).exp()[0, 0].tolist()
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


NEVER = -1e9  # log-probability that fills classes with few subclasses


class SubclassHead(Head):
    """p(c) is the sum of p(s) over the subclasses s of c, with p(s) = softmax(W h + b)_s.

    Args:
        in_size: D, features of h.
        inside: [S] the class of each subclass; every class from 0 to C - 1 has one.
        smoothing: share of the probability of a subclass and of a class that is spread over all in training.

    Example:
        >>> SubclassHead(3, [0, 1, 1])(torch.zeros(1, 1, 3)).exp()[0, 0]
        tensor([0.3333, 0.6667], grad_fn=<SelectBackward0>)
    """

    inside: Tensor
    members: Tensor

    def __init__(self, in_size: int, inside: Sequence[int], *, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.bias = nn.Parameter(torch.zeros(len(inside)))
        self.weight = nn.Parameter(torch.empty(len(inside), in_size))
        nn.init.normal_(self.weight, std=in_size**-0.5)
        own = [[s for s, c in enumerate(inside) if c == number] for number in range(max(inside) + 1)]
        most = max(map(len, own))
        filled = torch.tensor([one + [len(inside)] * (most - len(one)) for one in own])
        self.register_buffer("inside", torch.tensor(inside), persistent=False)  # [S] of the reader
        self.register_buffer("members", filled, persistent=False)  # [C, most]

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., C] in at least float32."""
        return self._classes(self._subclasses(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor) -> Loss:
        """The mean of the cross-entropies of the subclass and of its class.

        A target is a subclass s, or S + c for a text of which only the class c is known: its subclass has the
        cross-entropy of the class.
        """
        logp, target = self._subclasses(h[mask]), target[mask]
        classes = self._classes(logp)
        both = torch.cat([logp, classes], -1)
        own = torch.cat([self.inside, torch.arange(classes.shape[-1], device=target.device)])[target]
        total = (F.nll_loss(both, target, reduction="sum") + F.nll_loss(classes, own, reduction="sum")) / 2
        if self.training and self.smoothing:
            spread = (logp.mean(-1) + classes.mean(-1)).sum() / 2
            total = (1 - self.smoothing) * total - self.smoothing * spread
        return Loss(total, mask.sum())

    def best(self, h: Tensor, mask: Tensor) -> Tensor:
        """The most probable class at each position."""
        return self(h).argmax(-1)  # type: ignore[no-any-return]

    def _subclasses(self, h: Tensor) -> Tensor:
        logits = linear(h, self.weight, self.bias)
        return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))

    def _classes(self, logp: Tensor) -> Tensor:
        return F.pad(logp, (0, 1), value=NEVER)[..., self.members].logsumexp(-1)


def check_subclasses(labels: Sequence[str], finer: Sequence[str], column: str, part: str) -> None:
    """Check that a column of subclasses, some of them empty, divides a class.

    Raises:
        DataError: no class has two of them.
    """
    pairs = {pair for pair in zip(labels, finer, strict=True) if pair[1]}
    if len(pairs) == len({label for label, _ in pairs}):
        raise DataError(
            f"{part}: column {column!r} (data.finer): expected a class with at least two subclasses, "
            "got none; name another column or leave data.finer out"
        )
