"""Check the inputs of the drop-in modules and convert them to one form.

Errors are ShapeError or ConfigError. Where torch.nn raises a RuntimeError, ours is also a RuntimeError and
contains torch's words, so that code that catches or matches them still works.
Read next: drop_in.py, drop_in_cells.py.
"""

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from weft import masks
from weft.errors import ConfigError, ShapeError
from weft.nn.padding import inspectable
from weft.wording import plural

Nan = Literal["refuse", "pass"]


class InputShapeError(ShapeError, RuntimeError):
    """A ShapeError that is also a RuntimeError, as raised by torch.nn."""


class RecurrentInput(NamedTuple):
    """A checked input of a recurrent module: batch first; packed rows sorted, the longest first."""

    x: Tensor  # [B, T, D]
    state: tuple[Tensor, ...]  # [layers x directions, B, H] each
    mask: Tensor | None  # [B, T] for a packed input
    packed: PackedSequence | None
    batched: bool
    time_first: bool


@contextmanager
def as_configuration(
    name: str, input_size: object, hidden_size: object, num_layers: object
) -> Iterator[None]:
    """Convert torch's ValueErrors in the block to ConfigErrors that show the arguments."""
    try:
        yield
    except ValueError as refusal:
        found = f"input_size={input_size!r}, hidden_size={hidden_size!r}, num_layers={num_layers!r}"
        raise ConfigError(f"{name}({found}, ..): {refusal}") from None


def refuse_projection(name: str, proj_size: int) -> None:
    """Raise a ConfigError in torch's words if a module that has no projection is given one.

    Args:
        name: of the module.
        proj_size: the argument.
    """
    if proj_size:
        raise ConfigError(
            f"{name}: proj_size argument is only supported for LSTM, not RNN or GRU: expected 0, got "
            f"{proj_size}; use LSTM, or hidden_size={proj_size}"
        )


def read_input(
    module: nn.RNNBase, given: Tensor | PackedSequence, hx: Any, *, unpack: bool = True
) -> RecurrentInput:
    """Check an input and a state, and convert them to one form.

    Args:
        module: the recurrent module.
        given, hx: arguments of its `forward`.
        unpack: return packed rows as [B, T, D]; otherwise x is [1, N, D], still packed.

    Raises:
        ShapeError, ConfigError: they do not match the module.
    """
    name = type(module).__name__
    packed, mask, batched = None, None, True
    if isinstance(given, PackedSequence):
        packed = given
        sizes = packed.batch_sizes
        _check_packed(name, packed)
        check_dtype(packed.data, module.weight_ih_l0)
        _check_features(name, packed.data, module.input_size)
        rows, x = int(sizes[0]), packed.data[None]
        if unpack:
            x, lengths = pad_packed_sequence(PackedSequence(packed.data, sizes), batch_first=True)
            mask = None if int(sizes[-1]) == rows else masks.from_lengths(lengths.to(x.device), x.shape[1])
        shape = f"packed, {rows} rows of up to {len(sizes)} steps, {x.shape[-1]} features"
    else:
        if given.dim() not in (2, 3):
            raise InputShapeError(
                f"{name}: Expected input to be 2D or 3D, got {given.dim()}D instead: "
                f"{list(given.shape)}; give [steps, rows, {module.input_size}]"
            )
        check_dtype(given, module.weight_ih_l0)
        _check_features(name, given, module.input_size)
        batched = given.dim() == 3
        x = given if batched else given[None]
        x = x.transpose(0, 1) if batched and not module.batch_first else x
        rows, shape = x.shape[0], str(list(given.shape))
        if x.shape[1] == 0:
            raise InputShapeError(
                f"{name}: Expected sequence length to be larger than 0 in RNN, and the input has shape "
                f"{list(given.shape)}; leave empty sequences out"
            )
    state = _read_state(module, hx, x, rows, batched, shape)
    if packed is not None and packed.sorted_indices is not None and hx is not None:
        state = tuple(part.index_select(1, packed.sorted_indices) for part in state)
    time_first = packed is None and batched and not module.batch_first
    return RecurrentInput(x, state, mask, packed, batched, time_first)


def pack_output(read: RecurrentInput, y: Tensor, finals: tuple[Tensor, ...]) -> tuple[Any, Any]:
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
    return y.transpose(0, 1) if read.time_first else y, _state(finals)


def check_dtype(x: Tensor, weight: Tensor) -> None:
    """Check that the input has the weights' dtype and that this machine supports it.

    Raises:
        ConfigError: names both dtypes and the conversion.
    """
    if x.dtype != weight.dtype and not torch._C._is_any_autocast_enabled():
        raise ConfigError(
            f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
            f"input.to({weight.dtype}), or convert model: model.to({x.dtype})"
        )
    if x.dtype in (torch.float16, torch.bfloat16) and x.device.type == "cpu" and not computes(x.dtype):
        raise ConfigError(
            f"torch {torch.__version__} cannot compute {x.dtype} on this CPU; use torch.float32, "
            "or torch.autocast('cpu', torch.bfloat16)"
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


def refuse_nan(name: str, read: RecurrentInput, state: Any) -> None:
    """Raise an error if the input has NaN; since NaN persists in the state, only the final state is checked.

    Raises:
        ConfigError: names the first row and step with NaN. NaN in the state without NaN in the input passes:
            the weights have grown too large, which the training loop reports.
    """
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


def _state(finals: tuple[Tensor, ...]) -> Any:
    return finals if len(finals) > 1 else finals[0]


def _check_features(name: str, x: Tensor, size: int) -> None:
    if x.shape[-1] != size:
        raise InputShapeError(
            f"{name}: input.size(-1) must be equal to input_size. Expected {size}, got {x.shape[-1]}: "
            f"expected input of shape [.., {size}], got {list(x.shape)}"
        )


def _check_packed(name: str, packed: PackedSequence) -> None:
    data, sizes = packed.data, packed.batch_sizes
    if data.dim() != 2 or len(sizes) == 0 or int(sizes.sum()) != len(data):
        raise InputShapeError(
            f"{name}: expected packed data [{int(sizes.sum())}, features], as its batch sizes sum to, "
            f"got {list(data.shape)}; make it with pack_padded_sequence"
        )
    if bool((sizes[1:] > sizes[:-1]).any()) or int(sizes[-1]) < 1:
        raise InputShapeError(
            f"{name}: expected a packed input with the longest row first, "
            f"got growing batch sizes {sizes.tolist()[:8]}; pack with enforce_sorted=False"
        )


def _read_state(
    module: nn.RNNBase, hx: Any, x: Tensor, rows: int, batched: bool, shape: str
) -> tuple[Tensor, ...]:
    name = type(module).__name__
    count = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [module.proj_size or module.hidden_size]
    if module.mode == "LSTM":
        sizes.append(module.hidden_size)
    if hx is None:
        return tuple(x.new_zeros(count, rows, size) for size in sizes)
    parts = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    if len(parts) != len(sizes) or isinstance(hx, Tensor) != (len(sizes) == 1):
        form = "(h, c)" if len(sizes) == 2 else "one tensor h"
        raise InputShapeError(f"{name}: expected a state {form}, got {len(parts)} tensors")
    for index, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        need = [count, rows, size] if batched else [count, size]
        if list(part.shape) != need:
            what = f"hidden[{index}]" if len(sizes) == 2 else "hidden"
            raise InputShapeError(
                f"{name}: Expected {what} size {tuple(need)}, got {list(part.shape)}: {count} is layers x "
                f"directions, the input is {shape}; carry the state of the same rows, or start anew"
            )
    return parts if batched else tuple(part[:, None] for part in parts)
