"""What is wrong with a layer's inputs, in one sentence: shapes, dtypes and devices.

A layer computes first: checking every input would cost time at each step of a search. If torch then raises
an error, `explained` compares the inputs with the contract and raises a ShapeError that says what was
expected and what was found; if they fit, torch's own error stands. What torch would accept silently is
checked before.
Read next: encoders/encoder.py, a contract with its check.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from weft.errors import ShapeError, WeftError
from weft.masks import inspectable, or_all
from weft.rooms import wrong_result
from weft.tree import leaves

RAW = (RuntimeError, AttributeError, IndexError, TypeError, ValueError)
F = TypeVar("F", bound=Callable[..., Any])


def explained(check: str, *, first: bool = False) -> Callable[[F], F]:
    """A decorator of a method; if it fails, the method named `check` looks for the mistake in its inputs.

    With `first` it looks before the method runs.
    """

    def around(method: F) -> F:
        @functools.wraps(method)
        def run(self: Any, *given: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling():
                return method(self, *given, **named)
            if first:
                getattr(self, check)(*given, **named)
            try:
                return method(self, *given, **named)
            except RAW as error:
                if not isinstance(error, WeftError):
                    _find(getattr(self, check), given, named, error)
                raise

        return run  # type: ignore[return-value]

    return around


def _find(check: Callable[..., Any], given: Any, named: Any, cause: Exception) -> None:
    try:
        check(*given, **named)
    except ShapeError as mistake:
        raise mistake from cause
    except RAW:  # arguments of another form, about which Python's own error says enough
        return


class Explained:
    """A base whose subclasses explain mistakes.

    Attributes:
        checks: the names of methods, and for each the method that checks its inputs.
        checks_first: the names of those whose inputs are checked before they run, as they run rarely.
        returns: what methods return, checked in classes that are not Weft's own: "tensor", "state" (a tuple)
            or "tensor, state", or a class.
    """

    checks: ClassVar[Mapping[str, str]] = {}
    checks_first: ClassVar[tuple[str, ...]] = ()
    returns: ClassVar[Mapping[str, str | type]] = {}

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if not cls.__module__.startswith("weft."):
            for name, need in cls.returns.items():
                if name in cls.__dict__:
                    setattr(cls, name, _returning(need, cls.__dict__[name]))
        for name, check in cls.checks.items():
            if name in cls.__dict__:
                setattr(cls, name, explained(check, first=name in cls.checks_first)(cls.__dict__[name]))


def _returning(need: str | type, method: F) -> F:
    @functools.wraps(method)
    def run(self: Any, *given: Any, **named: Any) -> Any:
        found = method(self, *given, **named)
        if not torch.compiler.is_compiling() and not _fits(found, need):
            what = WORDS[need] if isinstance(need, str) else f"a {need.__name__}"
            got = ", ".join(map(called, found)) if isinstance(found, tuple) else called(found)
            raise wrong_result(self, method.__name__, what, got)
        return found

    return run  # type: ignore[return-value]


WORDS = {
    "tensor": "a tensor",
    "state": "a state, a tuple of tensors",
    "tensor, state": "two values, y and the next state, which is a tuple of tensors",
}


def _fits(found: Any, need: str | type) -> bool:
    if isinstance(need, type):
        return isinstance(found, need)
    if need == "tensor":
        return isinstance(found, Tensor)
    if need == "state":
        return isinstance(found, tuple)
    return isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], tuple)


def check_tensor(
    place: str,
    what: str,
    x: Any,
    axes: tuple[str | int, ...],
    like: Tensor | None = None,
    *,
    real: bool = True,
) -> None:
    """Check type, shape, dtype and device of an input."""
    form = f"[{', '.join(map(str, axes))}]"
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"{place}: expected {what} as a tensor {form}, got {called(x)}; torch.as_tensor makes one of "
            "numbers"
        )
    more = axes[0] == ".."
    sizes = axes[1:] if more else axes
    same = x.dim() >= len(sizes) if more else x.dim() == len(sizes)
    ends = x.shape[x.dim() - len(sizes) :]
    if not same or any(need != got for need, got in zip(sizes, ends, strict=False) if isinstance(need, int)):
        alone = axes[0] == "rows" and x.dim() == len(sizes) - 1
        hint = f"; one sequence is a batch of one: {what}[None]" if alone else ""
        raise ShapeError(f"{place}: expected {what} of shape {form}, got {list(x.shape)}{hint}")
    if "steps" in axes and x.shape[axes.index("steps") - len(axes)] == 0:
        raise ShapeError(f"{place}: expected {what} with at least one step, got {list(x.shape)}")
    if like is not None:
        check_like(place, like, [(what, x)])
    elif real and not (x.is_floating_point() or x.is_complex()):
        raise ShapeError(f"{place}: expected {what} of floating-point numbers, got {x.dtype}; give x.float()")


def check_like(place: str, weight: Tensor, given: Iterable[tuple[str, Tensor]]) -> None:
    """Check that inputs have a weight's dtype and device; autocast converts other floating-point types."""
    converts = torch._C._is_any_autocast_enabled()
    for what, one in given:
        name = what.split()[-1]
        check_device(place, what, one, weight.device)
        if one.dtype != weight.dtype and not (converts and one.dtype.is_floating_point):
            raise ShapeError(
                f"{place}: expected {what} of {weight.dtype}, as the weights are, got {one.dtype}; "
                f"give {name}.to({weight.dtype}), or convert the model"
            )


def check_device(place: str, what: str, x: Tensor, device: torch.device) -> None:
    """Check that an input is on the layer's device."""
    if x.device != device:
        raise ShapeError(
            f"{place}: expected {what} on {device}, as the layer and its other inputs are, got {x.device}; "
            f'give {what.split()[-1]}.to("{device}"), or move the model'
        )


def check_classes(place: str, what: str, x: Any, count: int, device: torch.device) -> None:
    """Check numbers of classes or tokens: whole, from 0 to `count` - 1, on the layer's device."""
    if not isinstance(x, Tensor):
        raise ShapeError(f"{place}: expected {what} as a tensor of int64, got {called(x)}")
    if x.dtype not in (torch.int64, torch.int32):
        raise ShapeError(f"{place}: expected {what} of torch.int64, got {x.dtype}; give {what}.long()")
    check_device(place, what, x, device)
    bad = x[(x < 0) | (x >= count)] if x.device.type != "meta" else x[:0]
    if bad.numel():
        raise ShapeError(f"{place}: expected {what} from 0 to {count - 1}, got {int(bad[0])}")


def check_mask(place: str, mask: Any, x: Tensor) -> None:
    """Check a mask [B, T] of an input [B, T, ..]: True or 1 = real."""
    if not isinstance(mask, Tensor):
        raise ShapeError(
            f"{place}: expected a mask as a tensor [rows, steps] of bool, True = real, got {called(mask)}"
        )
    if mask.shape != x.shape[:2]:
        raise ShapeError(f"{place}: expected a mask of shape {list(x.shape[:2])}, got {list(mask.shape)}")
    if mask.dtype.is_floating_point or mask.dtype.is_complex:
        raise ShapeError(
            f"{place}: expected a mask of bool (True = real) or integers (0 = padding), got {mask.dtype}; "
            "give mask.bool() if 0 is padding in it"
        )
    check_device(place, "mask", mask, x.device)


def read_mask(mask: Tensor | None, x: Tensor, name: str, *, some: bool = False) -> Tensor:
    """A mask as bool; None for all real, integers with 0 for padding. `some` refuses False everywhere."""
    if mask is None:
        return or_all(mask, x)
    check_mask(name, mask, x)
    mask = mask if mask.dtype == torch.bool else mask != 0
    if some and mask.is_cpu and inspectable(mask) and not mask.any():
        raise ShapeError(
            f"{name}: expected a mask with at least one real position, got False everywhere; "
            "True is real in Weft's masks, so turn one of torch's around with ~mask"
        )
    return mask


def check_attention_mask(place: str, mask: Any, sizes: tuple[int, ...], device: torch.device) -> None:
    """Check a mask that is broadcast to energies of sizes [B, H, T, S]."""
    form = list(sizes)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        found = mask.dtype if isinstance(mask, Tensor) else called(mask)
        raise ShapeError(f"{place}: expected a mask of bool that broadcasts to {form}, got {found}")
    ends = sizes[len(sizes) - mask.dim() :]
    fits = 2 <= mask.dim() <= len(sizes)
    if not fits or any(got not in (1, need) for need, got in zip(ends, mask.shape, strict=True)):
        raise ShapeError(
            f"{place}: expected a mask that broadcasts to {form}, got {list(mask.shape)}; a mask of rows "
            "and keys is mask[:, None, None]"
        )
    check_device(place, "mask", mask, device)


def check_state(place: str, state: Any, rows: int, maker: str) -> None:
    """Check that a state is a tuple with tensors of these rows."""
    if not isinstance(state, tuple):
        raise ShapeError(f"{place}: expected a state from {maker}, got {called(state)}")
    for leaf in leaves(state):
        if isinstance(leaf, Tensor) and leaf.dim() and (leaf.shape[0] == 0 or rows % leaf.shape[0]):
            raise ShapeError(
                f"{place}: expected x and a state of the same rows, got {rows} rows and a state of "
                f"{leaf.shape[0]}; {maker} makes one"
            )


def weight_of(module: nn.Module) -> Tensor | None:
    """A floating-point weight of a layer, to compare inputs with; None if it has none."""
    return next((one for one in module.parameters() if one.is_floating_point()), None)


def called(x: Any) -> str:
    """The argument as an error message shows it: a list, an int, a tensor [2, 3]."""
    if isinstance(x, Tensor):
        return f"a tensor {list(x.shape)}"
    name = type(x).__name__
    return "None" if x is None else f"an {name}" if name[0] in "aeiou" else f"a {name}"
