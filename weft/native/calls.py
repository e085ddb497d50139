"""Calls of compiled code: jobs whose work is shared among threads, and addresses of tensors."""

from ctypes import Structure, byref

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
    """The address of a tensor's first element; None (NULL in C) for None."""
    return None if tensor is None else tensor.data_ptr()
