"""Kernels in Triton, for the cells that cuDNN does not have; `triton` is imported only when one runs.

    layer.py   recurrences with a matrix, steps.py: what happens between two of their products
    ../../light/triton.py   recurrences without a matrix, all steps in one kernel

No GPU has run them yet: they are tested on the CPU by Triton's interpreter (TRITON_INTERPRET=1), which says
that the numbers are right and nothing about speed.
"""

import functools
import importlib.util
import os

import torch


def why_not(device: torch.device) -> str:
    """Why Triton cannot run there; "" if it can.

    Example:
        >>> import torch
        >>> why_not(torch.device("meta"))
        'Triton runs on a GPU; on the CPU only its interpreter does, which TRITON_INTERPRET=1 asks for'
    """
    if device.type != "cuda" and not (device.type == "cpu" and interpreted()):
        return "Triton runs on a GPU; on the CPU only its interpreter does, which TRITON_INTERPRET=1 asks for"
    return "" if _there() else "the package triton is not installed"


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, one NumPy operation after the other."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def _there() -> bool:
    return importlib.util.find_spec("triton") is not None
