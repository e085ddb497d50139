"""Windows of series as tensors for a model."""

import numpy as np
import torch

from weft.data.windows import Windows
from weft.nn.forecasters.forecaster import Past

ROWS = 512  # windows per step


def tensors(windows: Windows, chosen: np.ndarray, device: torch.device) -> tuple[Past, np.ndarray]:
    """The model's inputs for some windows, and their futures [B, H], NaN where missing."""
    past, future, known = windows.take(chosen)
    which = torch.from_numpy(chosen[:, 0].copy())
    seen = torch.from_numpy(windows.seen(chosen)).float()
    parts = torch.from_numpy(past).float(), torch.from_numpy(known).float(), which, seen
    return Past(*(part.to(device) for part in parts)), future
