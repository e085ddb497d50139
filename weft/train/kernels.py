"""The machine of a training, which its checkpoints name: on another one, sums may round differently.

Read next: resume.py; ../nn/kernels/rules.py, which chooses kernels by the kind of processor.
"""

import os

import torch

from weft import native
from weft.nn.kernels import choice, rules
from weft.train.saved import About

SETTINGS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Environment variables that limit the instruction sets of the libraries."""


def machine() -> str:
    """What the rounding of a training depends on, as text for people.

    Example:
        >>> "torch" in machine()
        True
    """
    compiled = native.loaded()
    code = compiled.reason if compiled.library else "none"
    limits = [f"{name}={os.environ[name]}" for name in SETTINGS if os.environ.get(name)]
    return ", ".join(
        [
            rules.processor()["model name"],
            f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})",
            f"compiled code: {code}",
            *limits,
            f"threads: {torch.get_num_threads()}",
            *choice.switched(),
        ]
    )


def moved(about: About) -> str:
    """A warning if a checkpoint is from a machine that may round differently, else ""."""
    then, now = about.machine, machine()
    if then in ("", now):
        return ""
    return (
        f"this run was trained on {then} and resumes on {now}; the result may differ from an uninterrupted "
        "run in the last digits"
    )
