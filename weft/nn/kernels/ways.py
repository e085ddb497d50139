"""The policy that chooses a kernel: an operation with several implementations ("ways") calls `pick`.

An operation lists its ways in order of preference. At least one consists of torch operations and works for
all inputs on any device, also where torch traces or transforms it. Read next: choice.py, the switches and the
measuring; linear.py, an operation with three ways.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from torch import Tensor

from weft import native
from weft.errors import ConfigError
from weft.nn.kernels import choice

Result = TypeVar("Result")


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
    fastest: Callable[[Sequence[Way[Result]]], Way[Result]] | None = None,
) -> Way[Result]:
    """Choose the way to compute an operation, by the first rule that applies.

    1. torch traces or transforms the code (torch.compile, torch.jit, torch.func): the first plain way
       that can compute the arguments.
    2. A switch forces a way: that way, or an error.
    3. Only one way can compute the arguments, or `fastest` is None: the first that can.
    4. Otherwise `fastest` decides, usually by `choice.choose`, which measures once per machine.

    Args:
        operation: its name, for the error message.
        ways: in order of preference, at least one of them plain.
        given: the arguments for each `why_not`.
        asked: the name of a forced way, or "auto".
        fastest: chooses among the ways that can compute the arguments; None takes the first.

    Raises:
        ConfigError: the forced way does not exist or cannot compute the arguments.

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
    """The ways that can compute these arguments."""
    return [way for way in ways if way.why_not is None or not way.why_not(*given)]


def fused() -> str:
    """The `asked` of `pick` for an operation of the switch "fused": "torch" or "auto"."""
    return "torch" if choice.forced("fused") == "torch" else "auto"


def why_not_native(tensor: Tensor, source: str) -> str:
    """Why the compiled code of a source file cannot read a tensor, apart from its dtype; "" if it can."""
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
