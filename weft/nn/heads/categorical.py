"""Classification over V symbols: softmax, cross-entropy, label smoothing, tied weights."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.masks import or_all, select, static
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import IGNORED, Linear, Output, cross_entropy, linear, log_probabilities


class Categorical(Head):
    """p = softmax(W h + b).

    Args:
        in_size: D, features of h.
        num_classes: V.
        smoothing: label smoothing in training: this share of the target's probability goes to all symbols.
        tied: an embedding table [V, E] to use as W (Press & Wolf 2017); h is projected to E if the sizes
            differ.
        bias: False fixes b at zero.
        class_weights: [V] factors of the loss of each target in training; empty for 1.

    Example:
        >>> import torch
        >>> head = Categorical(5, 7)
        >>> logp = head(torch.zeros(2, 3, 5))  # [B, T, V]
        >>> logp.shape, bool(torch.allclose(logp.exp().sum(-1), torch.ones(2, 3)))
        (torch.Size([2, 3, 7]), True)
    """

    class_weights: Tensor | None

    def __init__(
        self,
        in_size: int,
        num_classes: int,
        *,
        smoothing: float = 0.0,
        tied: nn.Embedding | None = None,
        bias: bool = True,
        class_weights: Sequence[float] = (),
    ) -> None:
        super().__init__(in_size=in_size)
        self.smoothing = smoothing
        weights = torch.tensor(class_weights) if class_weights else None
        self.register_buffer("class_weights", weights, persistent=False)  # of the data, not of the model
        self.project: nn.Module = nn.Identity()
        if tied is not None and tied.embedding_dim != in_size:
            self.project = Linear(in_size, tied.embedding_dim, bias=False)
        if bias:
            self.bias: Tensor = nn.Parameter(torch.zeros(num_classes))
        else:
            self.register_buffer("bias", torch.zeros(num_classes))
        if tied is None:
            self.weight: Tensor = nn.Parameter(torch.empty(num_classes, in_size))
            nn.init.normal_(self.weight, std=in_size**-0.5)
        else:
            self.weight = tied.weight

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., V] in at least float32."""
        h = self.project(h)
        if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing():
            logits = linear(h, self.weight, self.bias)
            return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        return log_probabilities(self, h, self.weight, self.bias)

    def output(self) -> Output:
        return Output(
            self, None if isinstance(self.project, nn.Identity) else self.project, self.weight, self.bias
        )

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """Cross-entropy, smoothed in training only; padding is removed before the matrix product."""
        mask = or_all(mask, target)
        return Loss(self.total(*real_targets(h, target, mask)), mask.sum())

    def total(self, h: Tensor, target: Tensor) -> Tensor:
        """The sum of `loss` over N positions: h [N, D] and targets [N], IGNORED at padding, to []."""
        h = self.project(h)
        if not (self.training and self.class_weights is not None):
            smoothing = self.smoothing if self.training else 0.0
            return cross_entropy(h, self.weight, self.bias, target, smoothing, padded=static())[0]
        logits = linear(h, self.weight, self.bias)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        weights = self.class_weights.to(logits)
        return F.cross_entropy(
            logits, target, weights, ignore_index=IGNORED, label_smoothing=self.smoothing, reduction="sum"
        )

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        return linear(self.project(h), self.weight, self.bias).argmax(-1)


def real_targets(h: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Features [N, D] and targets [N] of real positions; where shapes are static, of all of them."""
    if static():
        return h.flatten(0, 1), target.masked_fill(~mask, IGNORED).flatten()
    return select(h, mask), select(target, mask)
