"""The kernels that a training uses: chosen during its first update and stored in its checkpoints.

So two runs of one recipe and seed on one machine add numbers in the same order, interrupted or not. Whatever
the first update uses is measured for every size that may follow, unless this machine's cache has the result;
anything used later is chosen by a rule, never by timing. Read next: ../nn/kernels/choice.py.
"""

from typing import Any

import torch

from weft.nn.kernels import choice, linear, measured
from weft.train.processes import Processes
from weft.train.saved import About
from weft.train.workers import Workers, threads


def decide(workers: Workers, processes: Processes, device: torch.device) -> None:
    """After the first update: choose for all sizes, in this process's name for all, and measure no more.

    Args:
        workers: a batch of several side by side has fewer threads than a validation.
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
    """What a checkpoint says of them."""
    return {"kernels": choice.taken(), "machine": machine()}


def restore(about: About) -> str:
    """Take over the choices of a checkpoint.

    Returns:
        A warning where this machine may round in another way, else nothing.
    """
    choice.keep(about.kernels)
    choice.fix()
    then, now = about.machine, machine()
    if then in ("", now):
        return ""
    return (
        f"this run was trained on {then}; it continues on {now}: the result may differ in the last digits "
        "from that of an unbroken run"
    )


def machine() -> str:
    """The machine, the threads and the kernels that are forced."""
    return ", ".join([measured.machine(), f"threads: {torch.get_num_threads()}", *choice.switched()])
