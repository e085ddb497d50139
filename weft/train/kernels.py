"""The kernels of a training: chosen during its first update and stored in its checkpoints.

Two runs of one recipe and seed on one machine therefore add numbers in the same order, interrupted or not.
The kernels of the first update are timed for every size that may follow, unless this machine's cache has the
result; anything used later is chosen by a rule, not by timing. Read next: ../nn/kernels/choice.py.
"""

from typing import Any

import torch

from weft.nn.kernels import choice, linear, measured
from weft.train.processes import Processes
from weft.train.saved import About
from weft.train.workers import Workers, threads


def decide(workers: Workers, processes: Processes, device: torch.device) -> None:
    """After the first update: choose kernels for all sizes and all processes, then stop measuring.

    Args:
        workers: parallel batches have fewer threads each than a validation.
        processes: the first one chooses for all.
        device: on a GPU there is nothing to choose.
    """
    if processes.first and device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            for count in sorted({workers.threads, workers.threads // workers.count}):
                with threads(count, workers.threads):
                    linear.decide()
                    for each in choice.met():
                        each()
    choice.keep(processes.told(choice.taken()))
    choice.fix()


def record() -> dict[str, Any]:
    """The kernels and the machine, for a checkpoint."""
    return {"kernels": choice.taken(), "machine": machine()}


def restore(about: About) -> str:
    """Use the kernels of a checkpoint.

    Returns:
        A warning if this machine may round differently, else "".
    """
    choice.keep(about.kernels)
    choice.fix()
    then, now = about.machine, machine()
    if then in ("", now):
        return ""
    return (
        f"this run was trained on {then} and resumes on {now}; the result may differ from an uninterrupted "
        "run in the last digits"
    )


def machine() -> str:
    """The machine, the number of threads and the forced kernels."""
    return ", ".join([measured.machine(), f"threads: {torch.get_num_threads()}", *choice.switched()])
