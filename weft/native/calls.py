"""How compiled code is called: a job, its work shared among threads, and addresses of tensors."""

from ctypes import Structure, byref

import torch
from torch import Tensor

from weft.native.jobs import CALLS
from weft.native.library import loaded

SOURCES = {function: source for source, functions in CALLS.items() for function in functions}


def call(function: str, job: Structure) -> None:
    """Do a job, its slabs shared among as many threads.

    Args:
        function: one of those in CALLS, from a library that is loaded.
        job: the struct of this function; the tensors that it points to must outlive the call.
    """
    found = loaded(SOURCES[function])
    getattr(found.library, function)(byref(job), found.start)


def slabs(rows: int) -> int:
    """Among how many threads this many rows are shared."""
    return max(1, min(torch.get_num_threads(), rows))


def pointer(tensor: Tensor | None) -> int | None:
    """The address of a tensor's first number; NULL for None."""
    return None if tensor is None else tensor.data_ptr()
