"""What pictures are drawn from: plain records, which can be filled without matplotlib.

Read next: series.py, which draws a forecast.
"""

from typing import NamedTuple

import numpy as np


class Forecasted(NamedTuple):
    """A series and its forecast, in the units of the data."""

    name: str
    past_times: np.ndarray  # [L] datetime64[s], or row numbers
    past: np.ndarray  # [L]
    times: np.ndarray  # [H]
    best: np.ndarray  # [H]
    quantiles: np.ndarray | None  # [H, Q]
    levels: tuple[float, ...]  # Q of the quantiles
    actual: np.ndarray | None = None  # [H] what was measured, where it is known
