"""One policy for choosing a kernel: an operation that can be computed in several ways asks `pick`.

An operation lists its ways by preference. At least one is made of torch's operations and computes everything
on any device, also where torch traces or transforms it. Read next: choice.py, the switches and the measuring;
linear.py, an operation with three ways.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

from weft import native
from weft.errors import ConfigError
from weft.nn.kernels import choice

Result = TypeVar("Result")


class Way(NamedTuple, Generic[Result]):
    """A way to compute an operation.

    name: as a switch names it.
    run: computes the operation.
    why_not: from what is given, the reason why this way cannot compute it, "" if it can; None: it always can.
    plain: made of torch's operations, so that torch can trace and transform it.
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
    fastest: Callable[[Sequence[Way[Result]]], Way[Result]] | None = None,
) -> Way[Result]:
    """The way to compute an operation here.

    1. Traced or transformed by torch (torch.compile, torch.jit, torch.func): the first plain way that can.
    2. Forced by a switch: that way, or an error.
    3. Only one way can compute it, or nothing is measured: the first that can.
    4. Otherwise `fastest` decides, usually by `choice.choose`: measured once on a machine, then kept.

    Args:
        operation: its name, for the error.
        ways: by preference, at least one of them plain.
        given: arguments for `why_not` of each way.
        asked: the name of a way, or "auto".
        fastest: chooses one of several ways that can compute it; None takes the first.

    Raises:
        ConfigError: the forced way does not exist or cannot compute this.

    Example:
        >>> ways = [Way("half", lambda n: n // 2, lambda n: "it is odd" if n % 2 else ""),
        ...         Way("plain", lambda n: n / 2, plain=True)]
        >>> pick("halving", ways, (4,)).name, pick("halving", ways, (5,)).name
        ('half', 'plain')
    """
    if choice.traced():
        return next(way for way in ways if way.plain and not _why_not(way, given))
    if asked != "auto":
        return _forced(operation, ways, given, asked)
    if fastest is None:
        return next(way for way in ways if way.why_not is None or not way.why_not(*given))
    can = able(ways, given)
    return can[0] if len(can) == 1 else fastest(can)


def able(ways: Sequence[Way[Result]], given: tuple[Any, ...]) -> list[Way[Result]]:
    """The ways that can compute what is given."""
    return [way for way in ways if way.why_not is None or not way.why_not(*given)]


def fused() -> str:
    """What is asked of an operation that compiled code does in one pass, as `pick` takes it."""
    return "torch" if choice.forced("fused") == "torch" else "auto"


def why_not_native(tensor: Tensor, source: str) -> str:
    """Why compiled code of a source cannot read a tensor, its dtype aside; "" if it can."""
    if tensor.device.type != "cpu":
        return "compiled code runs on the CPU"
    if type(tensor) is not Tensor:
        return f"compiled code takes plain tensors, not {type(tensor).__name__}"
    found = native.loaded(source)
    return "" if found.library is not None else found.reason


def _forced(operation: str, ways: Sequence[Way[Result]], given: tuple[Any, ...], asked: str) -> Way[Result]:
    way = next((way for way in ways if way.name == asked), None)
    if way is None:
        names = ", ".join(way.name for way in ways)
        raise ConfigError(f"{operation}: cannot use {asked}: expected one of {names}; force torch instead")
    if reason := _why_not(way, given):
        raise ConfigError(f"{operation}: cannot use {asked}: {reason}; force torch instead")
    return way


def _why_not(way: Way[Result], given: tuple[Any, ...]) -> str:
    return "" if way.why_not is None else way.why_not(*given)
