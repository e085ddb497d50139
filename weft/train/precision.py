"""What `precision: auto` means for a training: bfloat16 where the processor multiplies it in hardware.

Nothing is timed, so that one recipe and seed give one model on one kind of processor. Checkpoints store the
answer, and a resumed run keeps it, also on another machine. The figures are in docs/reference/kernels.md.
Read next: ../nn/devices.py, ready.py.
"""

from typing import Literal

import torch

from weft.nn import devices
from weft.train.saved import About
from weft.train.settings import TrainingSettings

Precision = Literal["float32", "bfloat16"]


def decide(settings: TrainingSettings, device: torch.device, before: About | None) -> Precision:
    """The precision of a training.

    Args:
        settings: settings of the training.
        device: where it trains.
        before: what the checkpoint says from which it resumes, or None at the start.
    """
    if settings.precision != "auto":
        return settings.precision
    match "" if before is None else before.precision or before.kernels.get("precision"):
        case "float32":
            return "float32"
        case "bfloat16":
            return "bfloat16"
    exact = settings.deterministic and device.type == "cpu"
    return "bfloat16" if devices.fast_bfloat16(device) and not exact else "float32"
