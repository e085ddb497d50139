"""The linear product that cells, attention, feed-forward and output layers all use, and its weights.

torch multiplies float32 matrices with MKL, which does not use AVX-512 on some processors. oneDNN, from the
same wheel, can be twice as fast there and slower elsewhere. Its operation is private to torch, so it is used
only if it works and agrees with the plain product. On processors with tiles (AMX), Weft's compiled code can
multiply float32 on them: each number is split into three bfloat16 numbers that add up to it, so the product
is as exact as in float32. The plain twin is torch.nn.functional.linear.

Steps of a loop share the tensors that all of them use:

    with repeating():
        for x in steps:
            state = cell.step(x, state)      # its products look for the open block

Autograd multiplies dy^T x for W at every step and adds the result, one pass over W a step. Here the backward
pass of a step leaves its factors, and a node before the loop, which runs after all steps, multiplies them
together. What the steps compute from a tensor alone, such as packed weights, is shared too.

Under autocast on the CPU the copies of weights in its dtype are made once per pass and never shared between
passes: torch keeps such copies for the whole process and drops all of them when any autocast block ends, so
a batch could use, or lose, those of another batch that runs at the same time, and two trainings with one
seed differed in the last bits. On a GPU a process runs one pass at a time and uses torch's cache.
Read next: choice.py, which chooses; attention.py; ../decoders/recurrent.py, which repeats; ../devices.py;
../../native/tiles.h.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import native
from weft.native import jobs, pointer
from weft.nn.border import check_tensor, explained
from weft.nn.kernels import choice
from weft.nn.randomness import recomputes
from weft.probe import traced, within

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b for x [..., I], weight [O, I], bias [O]; gives [..., O]."""
    if torch.compiler.is_compiling():  # sizes may be symbolic, so do not branch on them
        return F.linear(x, weight, bias)
    if x.dim() > 2 and not torch.is_grad_enabled():
        x = x.contiguous()  # torch multiplies a transposed batch piece by piece: 14 ms instead of 3
    weight, bias = cast_weight(weight), None if bias is None else cast_weight(bias)
    held = shared(weight, bias, weight_sums)
    if held is None and x.numel() * weight.shape[0] < choice.SMALL_PRODUCT:
        return F.linear(x, weight, bias)
    if not _suits(x, weight, bias):
        choice.forced("linear")  # which refuses an unknown name
        return F.linear(x, weight, bias)
    if held is not None:
        way = held.sums.made(("forward", x.numel()), lambda: _way(x, weight))
        return _Product.apply(x, held.tensor, held.bias, WAYS[way], held.sums)
    way = _way(x, weight)
    learns = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    if way != "torch" and learns:
        return _Product.apply(x, weight, bias, WAYS[way], None)
    return WAYS[way](x, weight, bias)


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


def _way(x: Tensor, weight: Tensor) -> str:
    """The forced way, or the one that the rule gives."""
    if traced():
        return "torch"
    asked = choice.forced("linear")
    if asked != "auto":
        if reason := _why_not(asked):
            raise choice.refused("linear", asked, reason)
        return asked
    rows, inputs = x.numel() // x.shape[-1], x.shape[-1]
    return choice.product(rows, inputs, len(weight), available())


@functools.cache
def available() -> tuple[str, ...]:
    """The ways to multiply on this machine."""
    return tuple(way for way in WAYS if not _why_not(way))


def _why_not(way: str) -> str:
    if way == "tiles":
        return "" if native.tiles() else native.loaded("tiles").reason
    return "this torch has no such product" if way == "onednn" and onednn() is None else ""


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
    if type(x) not in choice.PLAIN or type(weight) not in choice.PLAIN or x.shape[-1] != weight.shape[1]:
        return False
    return bias is None or (bias.dtype == torch.float32 and bias.shape == weight.shape[:1])


class _Product(torch.autograd.Function):
    """A product computed outside torch; so are its gradients, so it can be differentiated twice."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, product: Product, sums: "Products | None"
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
                dx = WAYS[way](rows, weight.mT, None).view(x.shape)
            return dx, None, None, None, None
        if ctx.needs_input_grad[0]:
            dx = _gradient_product(rows, weight.mT).view(x.shape)
        if ctx.needs_input_grad[1]:
            dw = _gradient_product(rows.mT, flat.mT)
        if ctx.needs_input_grad[2]:
            db = rows.sum(0)
        return dx, dw, db, None, None


def _gradient_product(x: Tensor, weight: Tensor) -> Tensor:
    product = WAYS[_way(x, weight)]
    if torch.is_grad_enabled():
        return _Product.apply(x, weight, None, product, None)
    return product(x, weight, None)


def weight_sums() -> "Products":
    """The gradient of a weight [O, I] and its bias, from dy [N, O] and x [N, I]."""
    return Products(weight_gradient)


def weight_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """dy^T x, [O, I], of dy [N, O] and x [N, I], without a graph."""
    way = _way(dy.mT, x.mT) if _suits(dy.mT, x.mT, None) else "tiles"
    if way == "onednn":  # copying the larger dy^T for it, column by column, took as long as the product
        return _by_onednn(x.mT, dy.contiguous().mT, None).mT.contiguous()
    if way != "torch":
        return linear(dy.mT, x.mT)
    # MKL multiplies x^T dy at 70 to 87 GFLOP/s and dy^T x at 59 to 86 (Zen 3, five sizes of LSTMs)
    return F.linear(x.mT, dy.mT).mT.contiguous()


TILE_ROWS = 16  # the smallest slab


def tiled(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b for x [.., I], weight [O, I], bias [O] in float32; gives [.., O]."""
    flat, weight = _dense(x.reshape(-1, x.shape[-1])), _dense(weight)
    (rows, inputs), outputs = flat.shape, len(weight)
    y = x.new_empty(*x.shape[:-1], outputs)
    slabs = native.slabs(-(-rows // TILE_ROWS))
    packed = tiled_room(outputs, inputs)
    cut = torch.empty(slabs * native.loaded("tiles").library.weft_tiles_group(), dtype=torch.int16)
    bias = None if bias is None else bias.contiguous()
    job = jobs.Product(
        rows, inputs, outputs, slabs, *flat.stride(), *weight.stride(), outputs,
        pointer(flat), pointer(weight), pointer(bias), pointer(packed), pointer(cut), pointer(y),
    )  # fmt: skip
    native.call("weft_tiles_pack", job)
    native.call("weft_tiles_product", job)
    return y


def tiled_panel(gates: int, size: int, weight: Tensor, *, back: bool = False) -> Tensor:
    """Weights [G O, K] of G gates, split and packed for compiled code; `back` packs one matrix as W^T."""
    inputs = len(weight) if back else weight.shape[1]
    packed = tiled_room(size, inputs, gates)
    native.loaded().library.weft_pack_tiled(gates, size, inputs, back, pointer(weight), pointer(packed))
    return packed


def tiled_room(rows: int, inputs: int, count: int = 1) -> Tensor:
    """A buffer [count, ..] in which compiled code stores split numbers, `count` times [rows, inputs]."""
    return torch.empty(count, native.loaded("tiles").library.weft_tiles_room(rows, inputs), dtype=torch.int16)


def room_arguments(room: Tensor | None) -> tuple[int, int | None]:
    """A buffer as arguments of compiled code: its size per slab and its address; NULL means no tiles."""
    return (0, None) if room is None else (room.shape[1], pointer(room))


def _dense(x: Tensor) -> Tensor:
    """x itself if one of its two axes is contiguous, else a contiguous copy."""
    return x if 1 in x.stride() else x.contiguous()


WAYS: dict[str, Product] = {"torch": F.linear, "onednn": _by_onednn, "tiles": tiled}

Made = TypeVar("Made")
WAITING_ROWS = 2048  # of the factors that wait for their product

_open: ContextVar[dict[tuple[int, ...], "Shared[Any]"] | None] = ContextVar("weft_repeated", default=None)


def repeating() -> AbstractContextManager[None]:
    """Share tensors among the steps in the block, where there are gradients to compute."""
    usable = torch.is_grad_enabled() and not choice.in_torch() and not traced() and not recomputes()
    return within(_open, {} if usable else None)


def opened() -> bool:
    """Whether a block is open that shares tensors."""
    return _open.get() is not None


class Sums(ABC):
    """The gradient of a shared tensor, summed over the steps of one backward pass.

    Every backward pass has its own, so what a pass left that does not ask for this gradient is forgotten.
    """

    def __init__(self) -> None:
        self._task = -1
        self._made: dict[Hashable, Any] = {}
        self.begin()

    def made(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What the steps need of the tensor's values, such as packed weights, made at the first call."""
        if key not in self._made:
            self._made[key] = make()
        found: Made = self._made[key]
        return found

    @abstractmethod
    def begin(self) -> None:
        """Forget what was added."""

    @abstractmethod
    def total(self) -> tuple[Tensor | None, Tensor | None]:
        """The gradients of the tensor and of its bias, or None."""

    def enter(self) -> None:
        """Called before something is added."""
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self.begin()
            self._task = task

    def take(self) -> tuple[Tensor | None, Tensor | None]:
        """`total`, once."""
        self.enter()
        found = self.total()
        self.begin()
        return found


class Products(Sums):
    """left^T right, [.., O, I], and the sum of left, [.., O]."""

    def __init__(self, multiply: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.multiply = multiply
        super().__init__()

    def begin(self) -> None:
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self._rows = 0
        self._sums: tuple[Tensor, Tensor] | None = None

    def add(self, left: Tensor, right: Tensor) -> None:
        """The factors of a step, [.., N, O] and [.., N, I]."""
        self.enter()
        self._waiting.append((left, right))
        self._rows += left.shape[-2]
        if self._rows >= WAITING_ROWS:
            self._fold()

    def total(self) -> tuple[Tensor | None, Tensor | None]:
        self._fold()
        return self._sums or (None, None)

    def _fold(self) -> None:
        if not self._waiting:
            return
        left, right = (torch.cat(parts, -2) for parts in zip(*self._waiting, strict=True))
        new = self.multiply(left, right), left.sum(-2)
        self._sums = new if self._sums is None else (self._sums[0].add_(new[0]), self._sums[1].add_(new[1]))
        self._waiting, self._rows = [], 0


S = TypeVar("S", bound=Sums)


class Shared(Generic[S]):
    """A tensor of the open block, or a weight with its bias; gradients of higher orders are not shared."""

    def __init__(self, tensor: Tensor, bias: Tensor | None, sums: S) -> None:
        self.given = tensor, bias  # a reference: their ids must not be reused
        self.sums = sums
        self.tensor, self.bias = _Node.apply(sums, tensor, bias)


def shared(tensor: Tensor, bias: Tensor | None, make: Callable[[], S]) -> Shared[S] | None:
    """A tensor in the open block; None outside of one and for tensors without a gradient."""
    held = _open.get()
    if held is None or not tensor.requires_grad or not torch.is_grad_enabled():
        return None
    key = id(tensor), id(bias), id(make)
    if key not in held:
        held[key] = Shared(tensor, bias, make())
    return held[key]


class _Node(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, sums: Sums, tensor: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        ctx.sums, ctx.biased = sums, bias is not None
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor), None if bias is None else bias.view_as(bias)

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, grad: Tensor | None, grad_bias: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        total, summed = ctx.sums.take()
        return None, _both(grad, total), _both(grad_bias, summed) if ctx.biased else None


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


_copies: ContextVar[dict[tuple[int, bool], tuple[Tensor, Tensor]] | None] = ContextVar(
    "weft_autocast", default=None
)


@contextmanager
def autocast_on_cpu(dtype: torch.dtype = torch.bfloat16) -> Iterator[None]:
    """torch.autocast for one pass on the CPU, with its own copies of the weights.

    Example:
        >>> product = torch.nn.Linear(2, 2)
        >>> with autocast_on_cpu():
        ...     cast_weight(product.weight) is cast_weight(product.weight)
        True
    """
    with within(_copies, {}), torch.autocast("cpu", dtype, cache_enabled=False):
        yield


def cast_weight(weight: Tensor) -> Tensor:
    """A parameter in autocast's dtype, cast at its first use in the open block; anything else unchanged."""
    copies = _copies.get()
    if copies is None or not (weight.requires_grad and weight.is_leaf and weight.dtype == torch.float32):
        return weight
    if weight.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return weight
    key = id(weight), torch.is_grad_enabled()
    if key not in copies:
        # A reference to the weight: its id must not be reused by another tensor.
        copies[key] = weight, weight.to(torch.get_autocast_dtype("cpu"))
    return copies[key][1]
