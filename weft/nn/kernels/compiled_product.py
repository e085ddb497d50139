"""`linear` as one operation that torch.compile leaves as it is: written and compiled code multiply alike.

What torch writes for a CPU calls MKL for every float32 product, where oneDNN may be the faster one. Under
autocast, and on a GPU, torch's own product serves. What it gains is in docs/scale.md: nothing that showed.
Read next: linear.py, which asks for it; ../regions.py.
"""

from typing import Any

import torch
from torch import Tensor

_registered = False


def suits(x: Tensor, weight: Tensor) -> bool:
    """Whether compiled code should call the operation for this product."""
    if not _registered or torch.compiler.is_exporting():
        return False
    plain = x.dtype == weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return plain and x.device.type == "cpu"


def register() -> None:
    """Make torch.ops.weft.linear known; before anything is compiled."""
    global _registered
    if _registered:
        return
    from weft.nn.kernels.linear import linear

    def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y = linear(x, weight, bias)
        return y if y.is_contiguous() else y.contiguous()

    def shaped(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return x.new_empty(*x.shape[:-1], weight.shape[0])

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, bias = inputs
        ctx.save_for_backward(x, weight)
        ctx.with_bias = bias is not None

    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows, flat = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        dx = torch.ops.weft.linear(rows, weight.mT, None).view(x.shape) if ctx.needs_input_grad[0] else None
        dw = torch.ops.weft.linear(rows.mT, flat.mT, None) if ctx.needs_input_grad[1] else None
        return dx, dw, rows.sum(0) if ctx.with_bias and ctx.needs_input_grad[2] else None

    made = torch.library.custom_op("weft::linear", product, mutates_args=())
    made.register_fake(shaped)
    made.register_autograd(backward, setup_context=keep)
    _registered = True
