"""Models that forecast series of numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, Graph


class Forecaster:
    """The next values of a series."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = Graph(folder / "forecast_values.onnx")
        self.about = about

    def __call__(self, text: str | Sequence[float], series: str | None = None) -> str:
        """The next values, with spaces between them; nothing for an empty line.

        Args:
            text: numbers, oldest first, with spaces or commas between them; nan for a missing one.
            series: name of the series as in training; None takes the scale of the first.
        """
        values = [float(one) for one in text.replace(",", " ").split()] if isinstance(text, str) else text
        return " ".join(f"{value:.6g}" for value in self.next(values, series)) if len(values) else ""

    def next(self, values: Sequence[float], series: str | None = None) -> np.ndarray:
        """[H] the next values; see __call__."""
        raw, lookback = np.array(values, np.float64), self.about["lookback"]
        if len(raw) < lookback or not np.isfinite(raw).any():
            raise ValueError(f"expected at least {lookback} values, got {len(raw)}; give a longer past")
        names = self.about["names"]
        if series in (None, *names):
            number = names.index(series) if series else 0
            mean, std = self.about["mean"][number], self.about["std"][number]
        else:
            number, mean, std = 0, float(np.nanmean(raw)), float(np.nanstd(raw)) or 1.0
        scaled = (raw - mean) / std
        places = np.maximum.accumulate(np.where(np.isfinite(scaled), np.arange(len(raw)), -1))
        scaled = np.where(places >= 0, scaled[np.maximum(places, 0)], 0.0)[-lookback:]
        given = {"values": scaled[None].astype(np.float32), "which": np.array([number])}
        best: np.ndarray = self.graph(given)["best"][0].astype(np.float64) * std + mean
        return best


KINDS |= {"forecaster": Forecaster}
