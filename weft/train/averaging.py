"""Average the weights of several checkpoints; late in training, the mean often scores better than each.

Read next: finish.py, which tries it.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


def mean(checkpoints: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, by name.

    Only the sum and one set are in memory at a time. Integers, such as counts in buffers, are taken from the
    last set.

    Example:
        >>> mean([{"w": torch.tensor([1.0])}, {"w": torch.tensor([4.0])}])["w"].item()
        2.5
    """
    sums: dict[str, Tensor] = {}
    last: Mapping[str, Tensor] = {}
    count = 0
    for last in checkpoints:
        count += 1
        for name, tensor in last.items():
            if tensor.is_floating_point() or tensor.is_complex():
                wide = tensor.to(torch.promote_types(tensor.dtype, torch.float64))
                sums[name] = sums[name] + wide if name in sums else wide
    return {
        name: (sums[name] / count).to(tensor.dtype) if name in sums else tensor
        for name, tensor in last.items()
    }
