"""A categorical head with an extra layer, as in masked language models."""

import torch.nn.functional as F
from torch import Tensor, nn

from weft.masks import or_all
from weft.nn.heads.categorical import Categorical, real_targets
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Linear


class Transformed(Head):
    """p = softmax(E LayerNorm(gelu(W h + b)) + c), where E is the embedding table if tied.

    Args:
        in_size: D, features of h.
        num_classes: V.
        smoothing, tied: see `Categorical`.
        norm_epsilon: of the LayerNorm.

    Source: Devlin et al. 2019, their code's `get_masked_lm_output`.

    Example:
        >>> import torch
        >>> Transformed(5, 7)(torch.zeros(2, 3, 5)).shape  # log-probabilities [B, T, V]
        torch.Size([2, 3, 7])
    """

    def __init__(
        self,
        in_size: int,
        num_classes: int,
        *,
        smoothing: float = 0.0,
        tied: nn.Embedding | None = None,
        norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__(in_size=in_size)
        self.layer = Linear(in_size, in_size)
        self.norm = nn.LayerNorm(in_size, eps=norm_epsilon)
        self.symbols = Categorical(in_size, num_classes, smoothing=smoothing, tied=tied)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., V] in at least float32."""
        return self.symbols(self._transformed(h))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """See Categorical.loss; padding is removed before the layer."""
        mask = or_all(mask, target)
        h, target = real_targets(h, target, mask)
        return Loss(self.symbols.total(self._transformed(h), target), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.symbols.best(self._transformed(h), mask)

    def _transformed(self, h: Tensor) -> Tensor:
        return self.norm(F.gelu(self.layer(h)))
