"""Which implementation ("way") computes an operation: the switches that force one, and `pick`.

An operation lists its ways in order of preference. At least one consists of torch operations and works for
all inputs on any device, also where torch traces or transforms it. Where more than one can compute a call, a
fixed rule of shape and processor decides (rules.py), never a clock. A forced way applies to the whole
process, because batches are trained in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: rules.py; linear.py, an operation with three ways; cross_entropy.py, compiled or in torch.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor

from weft import native
from weft.errors import ConfigError

Result = TypeVar("Result")

Cells = Literal["auto", "native", "narrow", "tiles", "torch", "operation", "triton", "steps"]
"""Recurrent layers. auto: by the rule; native: Weft's compiled code; narrow: compiled code
that multiplies in bfloat16, under autocast; tiles: compiled code on the processor's tile unit (AMX);
torch: no compiled code; operation: torch's own, where it has one; triton: GPU kernels; steps: the plain
loop."""

Products = Literal["auto", "torch", "onednn", "tiles"]
"""Linear products."""

Fused = Literal["auto", "native", "tiles", "torch"]
"""Operations that compiled code computes in one pass: losses, additive attention, search steps. auto: by the
rule; torch: no compiled code; native: compiled code without tiles; tiles: a search multiplies
float32 on tiles for any number of rows."""

SWITCHES = {"cells": get_args(Cells), "linear": get_args(Products), "fused": get_args(Fused)}
"""Each switch and its values. Force one with `use`, or with the environment variable WEFT_<SWITCH>."""

OLD_NAMES = {"written": "torch", "bptt": "torch"}
"""Ways of earlier versions, and what they mean now."""

# Private to torch. If it is missing, assume that a transform is active and use torch operations only.
_transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_forced: dict[str, str] = {}


def forced(switch: str) -> str:
    """The way forced by `use`, else by the environment, else "auto"."""
    name = _asked(switch)
    if name == "auto" and switch == "fused":
        name = _asked("cells")
        return name if name in SWITCHES["fused"] else "torch"
    return name


def switched() -> list[str]:
    """The switches that are not "auto", as environment settings: ["WEFT_CELLS=torch"]."""
    names = {switch: _asked(switch) for switch in SWITCHES}
    return [f"{_variable(switch)}={name}" for switch, name in names.items() if name != "auto"]


def check(place: str, name: str, switch: str) -> str:
    """Check the name of a way; an old name is replaced by its current one."""
    name = OLD_NAMES.get(name, name)
    if name not in SWITCHES[switch]:
        raise ConfigError(f"{place}: expected one of {', '.join(SWITCHES[switch])}, got {name!r}")
    return name


@contextmanager
def use(
    *, cells: Cells | None = None, linear: Products | None = None, fused: Fused | None = None
) -> Iterator[None]:
    """Force a way inside the block, for the whole process.

    Example:
        >>> import torch
        >>> from weft.nn.kernels.linear import linear
        >>> with use(linear="torch"):
        ...     linear(torch.ones(1, 2), torch.ones(1, 2))
        tensor([[2.]])
    """
    before = dict(_forced)
    for switch, name in (("cells", cells), ("linear", linear), ("fused", fused)):
        if name is not None:
            _forced[switch] = check(switch, name, switch)
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)


def traced() -> bool:
    """Whether torch compiles, traces or transforms this code, so only torch operations may run."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or _transforming()


def mapped() -> bool:
    """Whether torch.func.vmap or jvp is active, for which torch's own recurrent operations have no rule."""
    if not _transforming():
        return False
    stack = getattr(torch._C._functorch, "get_interpreter_stack", lambda: None)()
    return stack is None or any(one.key() != torch._C._functorch.TransformType.Grad for one in stack)


class Way(NamedTuple, Generic[Result]):
    """One way to compute an operation.

    name: its name in a switch.
    run: computes the operation.
    why_not: maps the arguments to the reason why this way cannot compute them, or "" if it can; None means
        that it can compute anything.
    plain: consists of torch operations, so torch can trace and transform it.
    """

    name: str
    run: Callable[..., Result]
    why_not: Callable[..., str] | None = None
    plain: bool = False


def pick(
    operation: str,
    ways: Sequence[Way[Result]],
    given: tuple[Any, ...],
    *,
    asked: str = "auto",
) -> Way[Result]:
    """Choose the way to compute an operation, by the first rule that applies.

    1. torch traces or transforms the code (torch.compile, torch.jit, torch.func): the first plain way
       that can compute the arguments.
    2. A switch forces a way: that way, or an error.
    3. Otherwise the first that can compute the arguments.

    Example:
        >>> ways = [Way("half", lambda n: n // 2, lambda n: "it is odd" if n % 2 else ""),
        ...         Way("plain", lambda n: n / 2, plain=True)]
        >>> pick("halving", ways, (4,)).name, pick("halving", ways, (5,)).name
        ('half', 'plain')
    """
    if traced():
        return next(way for way in ways if way.plain and not _why_not(way, given))
    if asked != "auto":
        return _asked_way(operation, ways, given, asked)
    return next(way for way in ways if way.why_not is None or not way.why_not(*given))


def in_torch() -> bool:
    """Whether the switch "fused" leaves its operations to torch."""
    return forced("fused") == "torch"


def compiles(why_not: Callable[..., str], *given: Any) -> bool:
    """Whether compiled code computes an operation of the switch "fused"; torch's operations do otherwise."""
    return not (traced() or in_torch() or why_not(*given))


def why_not_native(tensor: Tensor, source: str) -> str:
    """Why the compiled code of a source file cannot read a tensor, apart from its dtype; "" if it can."""
    if tensor.device.type != "cpu":
        return "compiled code runs on the CPU"
    if type(tensor) is not Tensor:
        return f"compiled code takes plain tensors, not {type(tensor).__name__}"
    found = native.loaded(source)
    return "" if found.library is not None else found.reason


def _asked_way(
    operation: str, ways: Sequence[Way[Result]], given: tuple[Any, ...], asked: str
) -> Way[Result]:
    way = next((way for way in ways if way.name == asked), None)
    if way is None:
        names = ", ".join(way.name for way in ways)
        raise ConfigError(f"{operation}: cannot use {asked}: expected one of {names}; force torch instead")
    if reason := _why_not(way, given):
        raise ConfigError(f"{operation}: cannot use {asked}: {reason}; force torch instead")
    return way


def _why_not(way: Way[Result], given: tuple[Any, ...]) -> str:
    return "" if way.why_not is None else way.why_not(*given)


def _asked(switch: str) -> str:
    name = _forced.get(switch)
    if name is None:
        variable = _variable(switch)
        name = _forced[switch] = check(variable, os.environ.get(variable) or "auto", switch)
    return name


def _variable(switch: str) -> str:
    return f"WEFT_{switch.upper()}"
