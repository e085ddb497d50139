"""Observe and change tensors inside a model, and ask how it is called: traced, exported, observed.

A module calls `record("attention", weights)` for tensors that figures may need; without a probe this costs
one look-up. To observe them, open a probe around the call:

    with probe() as seen:
        model.loss(batch)
    seen["attention"]          # every tensor recorded under that name, in order

A tensor can also be changed where a module calls `edited("attention", weights)`:

    with editing(lambda name, weights: torch.zeros_like(weights)):
        model.loss(batch)

Read next: figures/alignment.py, which draws recorded tensors; diagnose/attention.py, which changes some.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from torch import Tensor

# Private to torch. If it is missing, assume that a transform is active and use torch operations only.
_transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

Value = TypeVar("Value")
Edit = Callable[[str, Tensor], Tensor]
"""Maps the name of a tensor and its value to the new value."""

_seen: ContextVar[dict[str, list[Tensor]] | None] = ContextVar("weft_probe", default=None)
_edit: ContextVar[Edit | None] = ContextVar("weft_edit", default=None)


@contextmanager
def within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Let a variable have a value in the block, in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def probe() -> Iterator[dict[str, list[Tensor]]]:
    """Collect the tensors recorded in the block, a list for each name.

    Example:
        >>> import torch
        >>> with probe() as seen:
        ...     record("gate", torch.tensor([0.5]))
        >>> seen["gate"]
        [tensor([0.5000])]
    """
    seen: dict[str, list[Tensor]] = defaultdict(list)
    with within(_seen, seen):
        yield seen


def record(name: str, tensor: Tensor) -> None:
    """Add a tensor to the open probe, if there is one."""
    seen = _seen.get()
    if seen is not None:
        seen[name].append(tensor)


def record_all(**tensors: Tensor | None) -> None:
    """Add each tensor to the open probe under its name, if there is one; None is left out."""
    if watching():
        for name, tensor in tensors.items():
            if tensor is not None:
                record(name, tensor)


def watching() -> bool:
    """Whether a probe is open, to skip computations that only figures need."""
    if _seen.get() is None:
        return False
    return not torch.compiler.is_compiling() or exporting()


def editing(change: Edit) -> AbstractContextManager[None]:
    """Apply `change` to every tensor passed to `edited` in the block, in this thread."""
    return within(_edit, change)


def edited(name: str, tensor: Tensor) -> Tensor:
    """The tensor after the active edit, if there is one."""
    change = _edit.get()
    return tensor if change is None else change(name, tensor)


def edit_active() -> bool:
    """Whether an edit is active, which needs a slower path that calls `edited`."""
    return not torch.compiler.is_compiling() and _edit.get() is not None


def exporting() -> bool:
    """Whether torch exports this code, so the graph must hold for inputs of other sizes and values.

    Always False with PyTorch 2.6, which cannot be asked. PyTorch 2.11 says yes in torch.compile too.
    """
    asked = getattr(torch.compiler, "is_exporting", None)
    return asked is not None and not torch.compiler.is_dynamo_compiling() and bool(asked())


def traced() -> bool:
    """Whether torch compiles, traces or transforms this code, so only torch operations may run."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or _transforming()


def mapped() -> bool:
    """Whether torch.func.vmap or jvp is active, for which torch's own recurrent operations have no rule."""
    if not _transforming():
        return False
    stack = getattr(torch._C._functorch, "get_interpreter_stack", lambda: None)()
    return stack is None or any(one.key() != torch._C._functorch.TransformType.Grad for one in stack)
