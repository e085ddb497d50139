"""Triton kernels for the cells that cuDNN does not have; `triton` is imported only when a kernel runs.

    layer.py, steps.py   recurrences with a matrix; steps.py computes what lies between two products
    light.py             recurrences without a matrix, all steps in one kernel

They have not been run on a GPU yet. They are tested on the CPU by Triton's interpreter (TRITON_INTERPRET=1),
which checks the numbers but not the speed.
"""

import functools
import importlib.util
import os

import torch


def why_not(device: torch.device) -> str:
    """Why Triton cannot run on a device; "" if it can.

    Example:
        >>> import torch
        >>> why_not(torch.device("meta"))
        'Triton runs on a GPU; on the CPU only its interpreter does, which TRITON_INTERPRET=1 asks for'
    """
    if device.type != "cuda" and not (device.type == "cpu" and interpreted()):
        return "Triton runs on a GPU; on the CPU only its interpreter does, which TRITON_INTERPRET=1 asks for"
    return "" if _installed() else "the package triton is not installed"


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, as NumPy operations."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None
