"""log softmax(W h + b) over a vocabulary without gradients: the last operation of every search step.

native    product, bias and softmax in compiled code on the CPU, in float32; bfloat16 and int8 where possible
torch     torch's product, then bias and softmax in place

Nothing is measured: compiled code does less work. Read next: ../../heads/categorical.py, which calls it.
"""

import torch
from torch import Tensor, nn

from weft import native
from weft.nn.kernels.choice import Way, fused, pick
from weft.nn.kernels.linear import linear
from weft.nn.kernels.panels import kept, multiplied, packing, why_not_in_search


def log_probabilities(of: nn.Module, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Log-probabilities [.., V] of h [.., D], in at least float32.

    Args:
        of: the module that owns the weights, which are packed once and again when they change.
        h: [.., D].
        weight: [V, D]; bias: [V].
    """
    given = of, h, weight, bias
    return pick("output probabilities", WAYS, given, asked=fused()).run(*given)


def _torch(_: nn.Module, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    # In place: a copy for the bias and a second buffer took a quarter of a search step.
    logits = linear(h, weight)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).add_(bias)
    return torch.log_softmax(logits, -1, out=logits)


def _native(of: nn.Module, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rows = h.numel() // h.shape[-1]
    how = packing(of, weight, -(-rows // native.slabs(rows)))
    packed = kept(of, [weight], lambda how: how.panels(weight), how)
    return multiplied("weft_predict", how, h, packed, bias.float().contiguous(), len(weight))


def _why_not_native(_: nn.Module, h: Tensor, weight: Tensor, bias: Tensor) -> str:
    same = weight.dtype == bias.dtype == h.dtype
    return why_not_in_search(h) if same else "compiled products take rows, weights and bias of one dtype"


WAYS = (
    Way("native", _native, _why_not_native),
    Way("torch", _torch, plain=True),
)
