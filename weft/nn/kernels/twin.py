"""Second derivatives of a kernel: the gradients of its plain twin, as a graph.

The kernels' own backward passes have no graph. If a caller wants one (`create_graph`), the twin is run again
and differentiated by autograd. Read next: cells/compiled.py, light.py, which call it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Tensors = Tensor | Sequence[Tensor | None]


def twin_gradients(
    twin: Callable[..., Tensors], given: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The gradients of `given`, with a graph.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (slope,) = twin_gradients(lambda x: x ** 2, [x], [torch.tensor(1.0)])
        >>> torch.autograd.grad(slope, x)
        (tensor(2.),)
    """
    wanted = [each for each in given if each is not None and each.requires_grad]
    with torch.enable_grad():
        outs = twin(*given)
        outs = [outs] if isinstance(outs, Tensor) else outs
        pairs = [
            (out, grad) for out, grad in zip(outs, grads, strict=True) if out is not None and grad is not None
        ]
        ends, weights = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(ends, wanted, weights, create_graph=True, allow_unused=True))
    return tuple(next(found) if each is not None and each.requires_grad else None for each in given)
