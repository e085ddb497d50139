"""Values of a series as forecasters read them, without gaps, and as they write them, with useful digits.

The program of an exported model contains this file: ../export/programs/__init__.py. Read next: windows.py.
"""

import math

import numpy as np


def filled(values: np.ndarray, first: float = 0.0, season: int = 1) -> np.ndarray:
    """Fill missing values [T] with the last one before them, or with `first` at the beginning.

    With a season, the last value of the same place in it comes first.
    """
    if season > 1 and not np.isfinite(values).all():
        padded = np.concatenate([values, np.full(-len(values) % season, np.nan)]).reshape(-1, season)
        places = np.stack([filled(place, np.nan) for place in padded.T], 1)
        values = places.reshape(-1)[: len(values)]
    places = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(len(values)), -1))
    return np.where(places >= 0, values[np.maximum(places, 0)], first)


def readable(value: float, deviation: float) -> str:
    """A number with six digits, or as many as show six of its series' deviation."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    finest = math.floor(math.log10(deviation)) if deviation > 0 else size
    return f"{value:.{min(17, max(6, size + 1, 6 + size - finest))}g}"
