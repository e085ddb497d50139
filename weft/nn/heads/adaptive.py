"""Classification over many symbols in groups: most of the output layer is left out for frequent symbols.

Read next: categorical.py, all symbols at once.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import or_all, static
from weft.nn.heads.categorical import Categorical, real_targets
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import IGNORED, cross_entropy, linear


class Adaptive(Head):
    """p(w) = p(w | h) for the first c_1 symbols, p(group k | h) p(w | group k, h) for the others.

    Group k has the symbols c_k .. c_k+1 - 1; the last one ends at V. The first softmax is over c_1 symbols
    and K groups, each other one over a group. Training computes the softmax of a group only where the target
    is in it. Symbols must be ordered by frequency, most frequent first, as those of word and character
    vocabularies are.

    Args:
        in_size: D, features of h.
        num_classes: V.
        cutoffs: c_1 < .. < c_K < V, the first symbol of each group.
        tied: an embedding table [V, E] to use as W; see `Categorical`.
        bias: see `Categorical`; the groups have a bias in any case.

    Raises:
        ConfigError: the cutoffs do not rise from 1 to below V.

    Source: Grave et al. 2017, "Efficient softmax approximation for GPUs"; here all groups have the full
    size E, which allows tied weights.

    Example:
        >>> import torch
        >>> head = Adaptive(3, 11, cutoffs=(4, 7))
        >>> head(torch.zeros(2, 3)).exp()[0, [0, 4, 7]].detach()  # 1/6, then 1/6 of 1/3 and of 1/4
        tensor([0.1667, 0.0556, 0.0417])
    """

    def __init__(
        self,
        in_size: int,
        num_classes: int,
        *,
        cutoffs: Sequence[int],
        tied: nn.Embedding | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(in_size=in_size)
        ends = [0, *cutoffs, num_classes]
        if len(ends) < 3 or any(low >= high for low, high in pairwise(ends)):
            raise ConfigError(
                f"cutoffs: expected rising numbers between 0 and the {num_classes} symbols, got "
                f"{list(cutoffs)}"
            )
        self.sizes = [high - low for low, high in pairwise(ends)]
        self.words = Categorical(in_size, num_classes, tied=tied, bias=bias)
        self.groups = nn.Parameter(torch.zeros(len(cutoffs), self.words.weight.shape[1]))
        self.group_bias = nn.Parameter(torch.zeros(len(cutoffs)))

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities [.., V] in at least float32."""
        h = self.words.project(h)
        logits = torch.cat(
            [linear(h, self.words.weight, self.words.bias), linear(h, self.groups, self.group_bias)], -1
        )
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        first, *others, groups = logits.split([*self.sizes, len(self.groups)], -1)
        first = torch.cat([first, groups], -1).log_softmax(-1)
        first, groups = first.split([self.sizes[0], len(self.groups)], -1)
        inside = [one.log_softmax(-1) + groups[..., [k]] for k, one in enumerate(others)]
        return torch.cat([first, *inside], -1)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """Cross-entropy; padding is removed before the matrix products, where shapes are not static."""
        mask = or_all(mask, target)
        h, target = real_targets(h, target, mask)
        h = self.words.project(h)
        first, *others = self.words.weight.split(self.sizes)
        first_bias, *other_biases = self.words.bias.split(self.sizes)
        low, chosen = self.sizes[0], target
        rest = []
        for k, (weight, bias) in enumerate(zip(others, other_biases, strict=True)):
            inside = (target >= low) & (target < low + len(weight))
            if static():  # the words of a group are not counted: the others are ignored
                wanted = (target - low).masked_fill(~inside, IGNORED)
                rest.append(cross_entropy(h, weight, bias, wanted, padded=True)[0])
            else:
                rest.append(cross_entropy(h[inside], weight, bias, target[inside] - low)[0])
            chosen = torch.where(inside, self.sizes[0] + k, chosen)
            low += len(weight)
        weight, bias = torch.cat([first, self.groups]), torch.cat([first_bias, self.group_bias])
        total, _ = cross_entropy(h, weight, bias, chosen, padded=static())
        return Loss(total + torch.stack(rest).sum(), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        best: Tensor = self(h).argmax(-1)
        return best
