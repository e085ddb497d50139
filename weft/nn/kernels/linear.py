"""The one linear product of the package: cells, attention, feed-forward and output layers all call it.

torch multiplies float32 matrices by MKL, which leaves AVX-512 unused on some processors; oneDNN, in the same
wheel, may be twice as fast there and slower elsewhere. Its operation is private to torch, so a probe decides
whether it works, agrees and is faster. The plain twin is torch.nn.functional.linear.
Read next: choice.py, lstm.py, cross_entropy.py.
"""

import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.lowered import lowered

SMALL = 1 << 20  # multiplications below which a call costs more than the product
LARGE = 1 << 25
PROBES = {"small": (64, 256, 512), "large": (256, 512, 512)}  # rows, inputs, outputs


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, backend: choice.Products | None = None
) -> Tensor:
    """x W^T + b for x [..., I], weight [O, I], bias [O]; gives [..., O].

    Args:
        x, weight, bias: of one dtype, but for autocast.
        backend: "torch" or "onednn" instead of the faster one; None as `choice.use` says.

    Raises:
        ConfigError: oneDNN is forced and not there.
    """
    if torch.compiler.is_compiling():  # with nothing that would ask for its sizes
        return F.linear(x, weight, bias)
    weight, bias = lowered(weight), None if bias is None else lowered(bias)
    if backend is None and x.numel() * weight.shape[0] < SMALL:
        return F.linear(x, weight, bias)
    way = backend or choice.forced("linear")
    choice.check("backend", way, "linear")
    if way == "torch" or not _suits(x, weight, bias):
        return F.linear(x, weight, bias)
    if way == "auto":
        way = product_for(x.numel() * weight.shape[0])
    elif onednn() is None:
        raise ConfigError("linear: onednn came, but this torch has no such product; force torch instead")
    if way == "torch":
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        return _Product.apply(x, weight, bias)
    return _product(x, weight, bias)


class Linear(nn.Linear):
    """torch.nn.Linear whose product is `linear`; same parameters, same state_dict."""

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] to [..., out_features]."""
        return linear(x, self.weight, self.bias)


def product_for(multiplications: int) -> str:
    """Whose float32 product of this size is faster on the CPU, "torch" or "onednn", by probe."""
    size = "large" if multiplications >= LARGE else "small"
    key = f"linear {size} float32 threads={choice.threads()}"
    name = choice.known(key)
    if name == "torch" or (name == "onednn" and onednn() is not None):
        return name
    if onednn() is None:
        return choice.choose(key, {"torch": lambda: None})
    rows, inputs, outputs = PROBES[size]
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        x, weight = torch.full((rows, inputs), 0.5), torch.full((outputs, inputs), 0.25)
        ways = {"torch": lambda: F.linear(x, weight), "onednn": lambda: _product(x, weight, None)}
        return choice.choose(key, ways)


@functools.cache
def onednn() -> Any:
    """oneDNN's product, if this torch has it and it agrees with the plain one."""
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        product = torch.ops.mkldnn._linear_pointwise.default
        x = torch.arange(15.0).view(3, 5)
        weight, bias = torch.arange(35.0).view(7, 5) - 17, torch.arange(7.0)
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            same = torch.allclose(
                product(x, weight, bias, "none", [], ""), F.linear(x, weight, bias), rtol=1e-5, atol=1e-5
            )
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return None
    return product if same else None


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not (weight.is_contiguous() or weight.mT.is_contiguous()):
        weight = weight.contiguous()  # 256 columns of a [1024, 512]: oneDNN took 2 s where 8 ms are usual
    y = onednn()(x.reshape(-1, x.shape[-1]), weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], weight.shape[0])


def _suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    if x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    if not (x.dtype == weight.dtype == torch.float32 and x.dim() > 1 and weight.dim() == 2 and x.numel()):
        return False
    if type(x) not in PLAIN or type(weight) not in PLAIN or x.shape[-1] != weight.shape[1]:
        return False
    if bias is not None and (bias.dtype != torch.float32 or bias.shape != weight.shape[:1]):
        return False
    return not choice.traced()


PLAIN = (Tensor, nn.Parameter)


class _Product(torch.autograd.Function):
    """oneDNN's product; its gradients are such products again, so that they can be derived, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        rows, flat = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            dx = _derived(rows, weight.mT).view(x.shape)
        if ctx.needs_input_grad[1]:
            dw = _derived(rows.mT, flat.mT)
        if ctx.needs_input_grad[2]:
            db = rows.sum(0)
        return dx, dw, db


def _derived(x: Tensor, weight: Tensor) -> Tensor:
    return _Product.apply(x, weight, None) if torch.is_grad_enabled() else _product(x, weight, None)
