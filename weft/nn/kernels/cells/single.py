"""A single step of a few rows in compiled code, without gradients. Its twin is compiled.run.

Read next: compiled.py; ../../drop_in_step.py, which calls it.
"""

from collections.abc import Sequence
from ctypes import memmove
from functools import lru_cache

import torch
from torch import Tensor

from weft import native
from weft.native import CELLS, GATES, pointer
from weft.nn.kernels import choice
from weft.nn.kernels.cells.compiled import PLAIN_ROWS
from weft.nn.kernels.cells.panels import PLAIN_TILE

MOST_ROWS = PLAIN_ROWS
FLOAT_BYTES = 4


def able() -> bool:
    """Whether there is compiled code, and no other way was forced."""
    return native.loaded().library is not None and choice.forced("cells") in ("auto", "native")


def single(
    cell: str, x: Tensor, state: Sequence[Tensor] | None, weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The output and the next state.

    Args:
        cell: lstm, gru, elman or relu.
        x: [1, B, D] float32; state: h and, of an LSTM, c [1, B, H]; None for zeros.
        weights: W_ih [G H, D], W_hh [G H, H], and both biases [G H] or none; contiguous.

    Returns:
        New tensors y, h, which is equal to it, and, of an LSTM, c [1, B, H].
    """
    (_, rows, inputs), size = x.shape, weights[1].shape[1]
    x = x if x.stride(2) == 1 else x.contiguous()
    # Each operation of torch takes as long as the products of a small step.
    if state is None:
        held = x.new_zeros(3, rows, size)
        c = x.new_zeros(1, rows, size) if cell == "lstm" else None
    else:
        held = torch.cat((state[0], state[0], state[0]))  # y and h are overwritten
        c = state[1].clone(memory_format=torch.contiguous_format) if cell == "lstm" else None
    form, bounds, active = _form(cell, rows, size, inputs)
    room = torch.empty(form.halves, dtype=torch.int16)
    job = native.Forward.from_buffer_copy(form)
    job.x_row, job.bounds, job.active, job.x = x.stride(1), pointer(bounds), pointer(active), pointer(x)
    job.panel_x, job.panel_h = pointer(weights[0]), pointer(weights[1])
    bias = _bias(cell, weights, size)
    job.bias = pointer(bias)
    if cell == "gru":
        job.bias_n = job.bias + 3 * size * FLOAT_BYTES if len(weights) == 2 else _inner(weights[3], size)
    first = held.data_ptr()
    job.h, job.c, job.room = first, pointer(c), pointer(room)
    native.call("weft_forward_plain", job)
    count = rows * size * FLOAT_BYTES
    memmove(first + 2 * count, first + count, count)
    _, y, h = held.unsafe_split(1)  # not views of each other: either may be changed in place
    return (y, h) if c is None else (y, h, c)


def _bias(cell: str, weights: Sequence[Tensor], size: int) -> Tensor:
    """[G H], of a GRU that of W_x for the candidate; without biases zeros, followed by [H] more."""
    if len(weights) == 2:
        return torch.zeros((GATES[cell] + 1) * size)
    if cell != "gru":
        return weights[2] + weights[3]
    bias = weights[2].clone()
    bias[: 2 * size].add_(weights[3][: 2 * size])
    return bias


def _inner(bias: Tensor, size: int) -> int:
    """The address of the candidate's bias [H] of W_h."""
    return bias.data_ptr() + 2 * size * FLOAT_BYTES


@lru_cache(256)
def _form(cell: str, rows: int, size: int, inputs: int) -> tuple[native.Forward, Tensor, Tensor]:
    """The arguments that all calls of these sizes share; copied, and so only read."""
    bounds, active = torch.tensor([0, rows]), torch.tensor([[rows]])
    job = native.Forward(CELLS[cell], 1, rows, size, inputs, 1, 0, 0, inputs)
    job.halves = 2 * PLAIN_TILE * GATES[cell] * size * 2
    return job, bounds, active
