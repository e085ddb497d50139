"""What the drop-in modules share with torch's: checks of inputs, TorchScript, quantisation and torch.compile.

A refusal of an input keeps torch's words, so that code that catches or matches them still works, and adds
what was expected and what was found. torch recognises its own recurrent modules by class: TorchScript gets
torch's module with the same parameters, `as_torch` returns such a module, and torch.compile runs a drop-in
eagerly, like torch's modules.
Read next: drop_in.py.
"""

import copy
import functools
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from weft import masks
from weft.errors import ConfigError, ShapeError
from weft.masks import inspectable
from weft.nn.border import called, check_device, check_like
from weft.wording import plural

Nan = Literal["refuse", "pass"]


class InputShapeError(ShapeError, RuntimeError):
    """A ShapeError that is also a RuntimeError, as raised by torch.nn."""


def check_given(module: nn.Module, given: Any) -> None:
    """Check that an input is a tensor or packed."""
    if not isinstance(given, Tensor | PackedSequence):
        raise InputShapeError(
            f"{type(module).__name__}: expected an input that is a tensor or a PackedSequence, got "
            f"{called(given)}; torch.as_tensor makes a tensor of numbers"
        )


class RecurrentInput(NamedTuple):
    """A checked input of a recurrent module: batch first; packed rows sorted, the longest first."""

    x: Tensor  # [B, T, D]
    state: tuple[Tensor, ...]  # [layers x directions, B, H] each
    mask: Tensor | None  # [B, T] for a packed input
    packed: PackedSequence | None
    batched: bool


def read_input(
    module: nn.RNNBase, given: Tensor | PackedSequence, hx: Any, *, unpack: bool = True
) -> RecurrentInput:
    """Check an input and a state, and convert them to one form.

    Packed rows become [B, T, D]; without `unpack` they are x [1, N, D], still packed.
    """
    check_device(type(module).__name__, "input", given.data, module.all_weights[0][0].device)
    packed = given if isinstance(given, PackedSequence) else None
    x: Tensor = given if packed is None else packed.data  # type: ignore[assignment]
    sizes = None if packed is None else packed.batch_sizes
    batched = packed is not None or x.dim() != 2
    try:
        if packed is not None:
            _check_packed(packed)
        elif x.dim() not in (2, 3):
            raise RuntimeError(f"Expected input to be 2D or 3D, got {x.dim()}D instead")
        x = x if batched else x.unsqueeze(0 if module.batch_first else 1)
        module.check_input(x, sizes)
        if sizes is None and x.shape[1 if module.batch_first else 0] == 0:
            raise RuntimeError(
                "Expected sequence length to be larger than 0 in RNN; leave empty sequences out"
            )
        state = _read_state(module, hx, x, sizes, batched)
    except RuntimeError as refusal:
        raise InputShapeError(_sentence(module, refusal, given, hx)) from None
    except ValueError as refusal:  # the dtype
        raise ConfigError(f"{type(module).__name__}: {refusal}") from None
    _check_half(x)
    if packed is None:
        return RecurrentInput(x if module.batch_first else x.transpose(0, 1), state, None, None, batched)
    if not unpack:
        return RecurrentInput(x[None], state, None, packed, batched)
    if packed.sorted_indices is not None and hx is not None:
        state = tuple(part.index_select(1, packed.sorted_indices) for part in state)
    x, lengths = pad_packed_sequence(PackedSequence(packed.data, packed.batch_sizes), batch_first=True)
    whole = int(lengths[-1]) == x.shape[1]  # the longest row comes first
    mask = None if whole else masks.from_lengths(lengths.to(x.device), x.shape[1])
    return RecurrentInput(x, state, mask, packed, batched)


def pack_output(
    module: nn.RNNBase, read: RecurrentInput, y: Tensor, finals: tuple[Tensor, ...]
) -> tuple[Any, Any]:
    """Output and final state in the form of the input."""
    if read.packed is not None:
        sizes, order, back = read.packed.batch_sizes, read.packed.sorted_indices, read.packed.unsorted_indices
        lengths = (sizes > torch.arange(int(sizes[0]))[:, None]).sum(1)
        data = pack_padded_sequence(y, lengths, batch_first=True).data
        if back is not None:
            finals = tuple(each.index_select(1, back) for each in finals)
        return PackedSequence(data, sizes, order, back), _state(finals)
    if not read.batched:
        return y[0], _state(tuple(each[:, 0] for each in finals))
    return y if module.batch_first else y.transpose(0, 1), _state(finals)


def refuse_nan(name: str, read: RecurrentInput, state: Any) -> None:
    """Refuse NaN in an input or a state; since it persists in the state, only the final state is checked."""
    h = state[0] if isinstance(state, tuple) else state
    if h.device.type != "cpu" or not inspectable(h) or not math.isnan(float(h.detach().sum())):
        return
    x = read.x if read.packed is None else pad_packed_sequence(read.packed, batch_first=True)[0]
    bad = x.detach().isnan().any(-1)
    if bool(bad.any()):
        row, step = bad.nonzero()[0].tolist()
        raise ConfigError(
            f"{name}: the input of {plural(len(bad), 'row')} and {plural(bad.shape[1], 'step')} is not a "
            f"number in row {row} at step {step}; fill or drop what is missing, or say nan='pass'"
        )
    if any(bool(part.isnan().any()) for part in read.state):
        raise ConfigError(
            f"{name}: expected a state without NaN, got one with it; give no state to begin with zeros, "
            "or say nan='pass'"
        )


@functools.cache
def computes(dtype: torch.dtype) -> bool:
    """Whether recurrent operations support this dtype on the CPU; tried once."""
    weights = [torch.zeros(4, 1, dtype=dtype), torch.zeros(4, 1, dtype=dtype)]
    start = (torch.zeros(1, 1, 1, dtype=dtype),) * 2
    try:
        torch.lstm(torch.zeros(1, 1, 1, dtype=dtype), start, weights, False, 1, 0.0, False, False, True)
    except RuntimeError:
        return False
    return True


def _check_half(x: Tensor) -> None:
    if x.dtype in (torch.float16, torch.bfloat16) and x.device.type == "cpu" and not computes(x.dtype):
        raise ConfigError(
            f"torch {torch.__version__} cannot compute {x.dtype} on this CPU; use torch.float32, "
            "or torch.autocast('cpu', torch.bfloat16)"
        )


def _check_packed(packed: PackedSequence) -> None:
    data, sizes = packed.data, packed.batch_sizes
    if data.dim() != 2 or len(sizes) == 0 or int(sizes.sum()) != len(data):
        raise RuntimeError(f"its batch sizes sum to {int(sizes.sum())}; make it with pack_padded_sequence")
    if bool((sizes[1:] > sizes[:-1]).any()) or int(sizes[-1]) < 1:
        raise RuntimeError(f"growing batch sizes {sizes.tolist()[:8]}; pack with enforce_sorted=False")


def _read_state(
    module: nn.RNNBase, hx: Any, x: Tensor, sizes: Tensor | None, batched: bool
) -> tuple[Tensor, ...]:
    count, rows, size = module.get_expected_hidden_size(x, sizes)
    widths = (size, module.hidden_size) if module.mode == "LSTM" else (size,)
    if hx is None:
        return tuple(x.new_zeros(count, rows, width) for width in widths)
    parts = (hx,) if isinstance(hx, Tensor) else tuple(hx) if isinstance(hx, tuple | list) else ()
    tensors = all(isinstance(part, Tensor) for part in parts)
    if not tensors or len(parts) != len(widths) or isinstance(hx, Tensor) != (len(widths) == 1):
        form = "(h, c)" if len(widths) == 2 else "h"
        got = f"{len(parts)} tensors" if parts and tensors else ", ".join(map(called, parts)) or called(hx)
        raise RuntimeError(f"Expected a state {form}, got {got}")
    for index, (part, width) in enumerate(zip(parts, widths, strict=True)):
        name = f"hidden[{index}]" if len(widths) == 2 else "hidden"
        wanted: Any = (count, rows, width) if batched else (count, width)
        module.check_hidden_size(part, wanted, f"Expected {name} size {{}}, got {{}}")
    check_like(type(module).__name__, x, zip(("h", "c"), parts, strict=False))
    return parts if batched else tuple(part[:, None] for part in parts)


def _sentence(module: nn.RNNBase, refusal: RuntimeError, given: Tensor | PackedSequence, hx: Any) -> str:
    """What torch refuses, what was expected, and what was found."""
    axes = "rows, steps" if module.batch_first else "steps, rows"
    count = module.num_layers * (2 if module.bidirectional else 1)
    if isinstance(given, Tensor):
        found = f"an input {list(given.shape)}"
    else:
        rows, steps = plural(max(given.batch_sizes.tolist(), default=0), "row"), len(given.batch_sizes)
        found = f"{rows} of up to {plural(steps, 'step')}, packed as {list(given.data.shape)}"
    return (
        f"{type(module).__name__}: {refusal}: expected an input [{axes}, {module.input_size}] and a state "
        f"[{count} (layers x directions), rows, {module.proj_size or module.hidden_size}] of the same rows, "
        f"got {found}{state_found(hx)}"
    )


def state_found(hx: Any) -> str:
    """The shapes of a state, for the end of an error: " and a state [1, 7, 5]", or "" without one."""
    parts = (hx,) if isinstance(hx, Tensor) else tuple(hx) if isinstance(hx, tuple | list) else ()
    shapes = [str(list(part.shape)) for part in parts if isinstance(part, Tensor)]
    return f" and a state {', '.join(shapes)}" if shapes else ""


def _state(finals: tuple[Tensor, ...]) -> Any:
    return finals if len(finals) > 1 else finals[0]


F = TypeVar("F", bound=Callable[..., Any])
TORCHS = (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)


class DropInModule(nn.Module):
    """A drop-in module for torch's tools; subclasses also subclass one of TORCHS."""

    __jit_unused_properties__ = ("qconfig",)

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        try:
            super().__init__(*arguments, **settings)
        except ValueError as refusal:
            usual = inspect.signature(type(self).__init__).parameters
            changed = {n: v for n, v in settings.items() if n not in usual or v != usual[n].default}
            given = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in changed.items())]
            raise ConfigError(f"{type(self).__name__}({', '.join(given)}): {refusal}") from None

    def __prepare_scriptable__(self) -> nn.Module:
        """torch's module with the same parameters, which torch.jit.script uses instead."""
        kind = next(base for base in type(self).__mro__ if base in TORCHS)
        own = {name: getattr(self, name, usual) for name, usual in (("residual", False), ("join", None))}
        if own["residual"] or own["join"] in ("mean", "sum"):
            raise ConfigError(
                f"{type(self).__name__}: expected residual=False and join='concatenate', which are all that "
                f"torch.nn.{kind.__name__} knows, got residual={own['residual']}, join={own['join']!r}; "
                "TorchScript and quantize_dynamic cannot take it"
            )
        theirs: nn.Module = kind.__new__(kind)
        theirs.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("residual", "join", "nan")}
        )
        return theirs

    @property
    def qconfig(self) -> None:
        """Set by torch.ao.quantization, which does not support this class; setting it warns."""

    @qconfig.setter
    def qconfig(self, _: Any) -> None:
        """Warn that torch.ao.quantization does not support this class."""
        name = type(self).__name__
        warnings.warn(
            f"weft.nn.{name} stays in floating point: torch quantises its own class alone; "
            "give weft.nn.as_torch(model) instead of the model",
            stacklevel=2,
        )

    @qconfig.deleter
    def qconfig(self) -> None:
        """Nothing to delete."""


def as_torch(model: nn.Module) -> nn.Module:
    """A copy of a model with torch.nn's recurrent modules instead of ours, with the same parameters.

    Args:
        model: any module, including a drop-in.

    Raises:
        ConfigError: a drop-in has a setting not available in torch.nn (residual, join).

    Example:
        >>> from weft.nn import LSTM
        >>> as_torch(nn.Sequential(LSTM(3, 5)))
        Sequential(
          (0): LSTM(3, 5)
        )
        >>> type(as_torch(LSTM(3, 5))).__module__
        'torch.nn.modules.rnn'
    """
    return _swapped(copy.deepcopy(model))


def _swapped(module: nn.Module) -> nn.Module:
    if isinstance(module, DropInModule):
        return module.__prepare_scriptable__()
    for name, child in module.named_children():
        setattr(module, name, _swapped(child))
    return module


def left_eager(function: F) -> F:
    """Make torch.compile run a function, and everything that it calls, eagerly.

    torch.compiler.disable does the same, but its import takes half a second.
    """
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP  # type: ignore[attr-defined]
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))  # type: ignore[attr-defined]
    return function
