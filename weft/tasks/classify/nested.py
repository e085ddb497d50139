"""Classes with subclasses: the subclasses are learnt, and a class has the probability of all of its own.

A text of a rare kind then does not have to look like all others of its class. Read next: model.py; reader.py.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import DataError
from weft.nn.heads.head import Head, Loss
from weft.nn.kernels.linear import linear

NEVER = -1e9  # log-probability that fills classes with few subclasses


class Nested(Head):
    """p(c) is the sum of p(s) over the subclasses s of c, with p(s) = softmax(W h + b)_s.

    Args:
        in_size: D, features of h.
        inside: [S] the class of each subclass; every class from 0 to C - 1 has one.
        smoothing: share of the probability of a subclass and of a class that is spread over all in training.

    Example:
        >>> Nested(3, [0, 1, 1])(torch.zeros(1, 1, 3)).exp()[0, 0]
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
