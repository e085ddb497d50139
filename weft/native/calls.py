"""Calls of compiled code: jobs whose work is shared among threads, and addresses of tensors."""

from collections.abc import Callable
from ctypes import Structure, addressof, byref, c_void_p, cast
from typing import NamedTuple

import torch
from torch import Tensor

from weft.native.jobs import CALLS, NARROW_CALLS
from weft.native.library import loaded

SOURCES = {
    function: source
    for calls in (CALLS, NARROW_CALLS)
    for source, functions in calls.items()
    for function in functions
}


def call(function: str, job: Structure) -> None:
    """Run a job, one thread per slab.

    Args:
        function: a function in CALLS or NARROW_CALLS whose library is loaded.
        job: the function's struct; the tensors that it points to must outlive the call.
    """
    found = loaded(SOURCES[function])
    getattr(found.library, function)(byref(job), found.start)


def slabs(rows: int) -> int:
    """The number of slabs (threads) for this many rows."""
    return max(1, min(torch.get_num_threads(), rows))


def pointer(tensor: Tensor | None) -> int | None:
    """The address of a tensor's first element; None (NULL in C) for None.

    Raises:
        RuntimeError: it is on another device, where compiled code would read memory that is not its own.
    """
    if tensor is None:
        return None
    if not tensor.is_cpu:
        raise RuntimeError(f"compiled code takes tensors on the CPU, got one on {tensor.device}")
    return tensor.data_ptr()


def address(function: str, source: str) -> int:
    """The address of a function of a loaded library, for other compiled code that calls it."""
    found = cast(getattr(loaded(source).library, function), c_void_p).value
    assert found is not None
    return found


class WholeStep(NamedTuple):
    """A model's step for searching.cpp, which takes many without Python in between.

    take: the address of a function as Take in stepping.h.
    model: the struct that it is given.
    slabs: threads for which the model has buffers.
    classes: V.
    held: the tensors to which the struct points.
    before: prepares the model for the steps until a time; called before each call of compiled code, and may
        raise an error that ends the search.
    """

    take: int
    model: Structure
    slabs: int
    classes: int
    held: object
    before: Callable[[int], None]

    @property
    def at(self) -> int:
        """The address of the struct."""
        return addressof(self.model)
