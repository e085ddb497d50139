"""Tensors that all steps of a loop use: their gradient is one product after the loop, not one a step.

    with repeating():
        for x in steps:
            state = cell.step(x, state)      # its products look for the open block (linear.py)

Autograd multiplies dy^T x for W at every step and adds the result, one pass over W a step. Here the backward
pass of a step leaves its factors, and a node before the loop, which runs after all steps, multiplies them
together. What the steps compute from a tensor alone, such as packed weights, is shared too. The plain twin is
autograd. Read next: linear.py; additive.py; ../decoders/recurrent.py, which opens the block.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from weft.nn.kernels import choice
from weft.nn.recompute import recomputes

Made = TypeVar("Made")
ROWS = 2048  # of the factors that wait for their product

_open: ContextVar[dict[tuple[int, ...], "Shared[Any]"] | None] = ContextVar("weft_repeated", default=None)


@contextmanager
def repeating() -> Iterator[None]:
    """Share tensors among the steps in the block, where there are gradients to compute."""
    usable = torch.is_grad_enabled() and not choice.in_torch() and not choice.traced() and not recomputes()
    token = _open.set({} if usable else None)
    try:
        yield
    finally:
        _open.reset(token)


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
    """left^T right, [.., O, I], and the sum of left, [.., O].

    Args:
        multiply: computes left^T right.
    """

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
        if self._rows >= ROWS:
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
    """A tensor of the open block, or a weight with its bias.

    Args:
        tensor, bias: what the steps use.
        sums: what a step's backward pass adds to.

    Attributes:
        tensor, bias: for the steps; they take gradients of higher orders, which are not shared.
    """

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
