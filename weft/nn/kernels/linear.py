"""The linear product that cells, attention, feed-forward and output layers all use.

torch multiplies float32 matrices with MKL, which does not use AVX-512 on some processors. oneDNN, from the
same wheel, can be twice as fast there and slower elsewhere. Its operation is private to torch, so it is used
only if it works and agrees with the plain product. On processors with tiles (AMX), Weft's compiled code can
multiply float32 on them. The plain twin is torch.nn.functional.linear. Read next: rules.py, which chooses;
tiles.py.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import native
from weft.nn.border import check_tensor, explained
from weft.nn.kernels import choice, rules, tiles
from weft.nn.kernels.autocast import cast_weight
from weft.nn.kernels.choice import Way, pick
from weft.nn.kernels.repeated import Products, shared

PLAIN = (Tensor, nn.Parameter)
Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b for x [..., I], weight [O, I], bias [O]; gives [..., O]."""
    if torch.compiler.is_compiling():  # sizes may be symbolic, so do not branch on them
        return F.linear(x, weight, bias)
    if x.dim() > 2 and not torch.is_grad_enabled():
        x = x.contiguous()  # torch multiplies a transposed batch piece by piece: 14 ms instead of 3
    weight, bias = cast_weight(weight), None if bias is None else cast_weight(bias)
    held = shared(weight, bias, weight_sums)
    if held is None and x.numel() * weight.shape[0] < rules.SMALL_PRODUCT:
        return F.linear(x, weight, bias)
    if not _suits(x, weight, bias):
        choice.forced("linear")  # which refuses an unknown name
        return F.linear(x, weight, bias)
    if held is not None:
        way = held.sums.made(("forward", x.numel()), lambda: _way(x, weight))
        return _Product.apply(x, held.tensor, held.bias, way.run, held.sums)
    way = _way(x, weight)
    if way.name == "torch":
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        return _Product.apply(x, weight, bias, way.run, None)
    return way.run(x, weight, bias)


class Linear(nn.Linear):
    """torch.nn.Linear whose product is `linear`; same parameters, same state_dict.

    Example:
        >>> import torch
        >>> Linear(3, 5)(torch.zeros(2, 7, 3)).shape
        torch.Size([2, 7, 5])
    """

    def check_inputs(self, x: Tensor) -> None:
        """Check the input of `forward`.

        Raises:
            ShapeError: a wrong number of features, dtype or device.
        """
        check_tensor("Linear", "x", x, ("..", self.in_features), self.weight)

    @explained("check_inputs")
    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] to [..., out_features]."""
        return linear(x, self.weight, self.bias)


def _way(x: Tensor, weight: Tensor) -> Way[Tensor]:
    """The forced way, or the one that the rule gives."""
    asked = choice.forced("linear")
    if asked != "auto" or choice.traced():
        return pick("linear", tuple(WAYS.values()), (), asked=asked)
    rows, inputs = x.numel() // x.shape[-1], x.shape[-1]
    return WAYS[rules.product(rows, inputs, len(weight), _available())]


@functools.cache
def _available() -> tuple[str, ...]:
    return tuple(name for name, way in WAYS.items() if way.why_not is None or not way.why_not())


@functools.cache
def onednn() -> Any:
    """oneDNN's product, or None if this torch lacks it or it disagrees with the plain product."""
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


def _by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not (weight.is_contiguous() or weight.mT.is_contiguous()):
        weight = weight.contiguous()  # for 256 columns of a [1024, 512] oneDNN took 2 s instead of 8 ms
    y = onednn()(x.reshape(-1, x.shape[-1]), weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], weight.shape[0])


def _suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether there is a choice: other dtypes, devices and shapes are left to torch's own product."""
    if x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    if not (x.dtype == weight.dtype == torch.float32 and x.dim() > 1 and weight.dim() == 2 and x.numel()):
        return False
    if type(x) not in PLAIN or type(weight) not in PLAIN or x.shape[-1] != weight.shape[1]:
        return False
    return bias is None or (bias.dtype == torch.float32 and bias.shape == weight.shape[:1])


class _Product(torch.autograd.Function):
    """A product computed outside torch; so are its gradients, so it can be differentiated twice."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        product: Product,
        sums: Products | None,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.sums = sums
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        rows, flat = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        dx = dw = db = None
        if ctx.sums is not None and not torch.is_grad_enabled():
            ctx.sums.add(rows, flat)
            if ctx.needs_input_grad[0]:
                key = "backward", rows.numel()  # choosing a way takes as long as a small product
                way = ctx.sums.made(key, lambda: _way(rows, weight.mT))
                dx = way.run(rows, weight.mT, None).view(x.shape)
            return dx, None, None, None, None
        if ctx.needs_input_grad[0]:
            dx = _gradient_product(rows, weight.mT).view(x.shape)
        if ctx.needs_input_grad[1]:
            dw = _gradient_product(rows.mT, flat.mT)
        if ctx.needs_input_grad[2]:
            db = rows.sum(0)
        return dx, dw, db, None, None


def _gradient_product(x: Tensor, weight: Tensor) -> Tensor:
    product = _way(x, weight).run
    if torch.is_grad_enabled():
        return _Product.apply(x, weight, None, product, None)
    return product(x, weight, None)


def weight_sums() -> Products:
    """The gradient of a weight [O, I] and its bias, from dy [N, O] and x [N, I]."""
    return Products(weight_gradient)


def weight_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """dy^T x, [O, I], without a graph.

    Args:
        dy: [N, O]; x: [N, I].
    """
    if not _suits(dy.mT, x.mT, None) or _way(dy.mT, x.mT).name != "torch":
        return linear(dy.mT, x.mT)
    # MKL multiplies x^T dy at 70 to 87 GFLOP/s and dy^T x at 59 to 86 (Zen 3, five sizes of LSTMs)
    return F.linear(x.mT, dy.mT).mT.contiguous()


WAYS = {
    way.name: way
    for way in (
        Way("torch", F.linear, plain=True),
        Way("onednn", _by_onednn, lambda: "" if onednn() else "this torch has no such product"),
        Way("tiles", tiles.product, lambda: "" if native.tiles() else native.loaded("tiles").reason),
    )
}
