"""Models that forecast series of numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.values import filled, readable
from weft.export.programs.common import KINDS, OnnxGraph


class Scaled:
    """A graph of scaled windows, and the scales of the series that it learnt from."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "forecast_values.onnx")
        self.about = about

    def check(self, raw: np.ndarray, called: str = "") -> None:
        """Refuse a series that is too short or has no numbers."""
        if len(raw) < self.about["lookback"] or not np.isfinite(raw).any():
            wanted = f"{called}expected at least {self.about['lookback']} rows"
            raise ValueError(f"{wanted}, got {len(raw)}; give a longer past")
        if np.nanmax(np.abs(raw)) >= 1e30:
            raise ValueError(f"{called}expected finite numbers below 1e30")

    def scale(self, name: str, raw: np.ndarray) -> tuple[int, float, float]:
        """Number, mean and deviation of a series; one that is new since training has its own scale."""
        if name in self.about["names"]:
            number = self.about["names"].index(name)
            return number, self.about["mean"][number], self.about["std"][number]
        return 0, float(np.nanmean(raw)), float(np.nanstd(raw)) or 1.0


class GraphForecaster(Scaled):
    """The next values of a series."""

    def __call__(self, text: str | Sequence[float], series: str | None = None) -> str:
        """The next values, with spaces between them; nothing for an empty line."""
        values = [float(one) for one in text.replace(",", " ").split()] if isinstance(text, str) else text
        if not len(values):
            return ""
        best, raw = self.next(values, series), np.array(values, np.float64)
        deviation = self.scale(series or self.about["names"][0], raw)[2]
        return " ".join(readable(value, deviation) for value in best)

    def next(self, values: Sequence[float], series: str | None = None) -> np.ndarray:
        """[H] the next values; see __call__."""
        raw, lookback = np.array(values, np.float64), self.about["lookback"]
        self.check(raw)
        number, mean, std = self.scale(series or self.about["names"][0], raw)
        scaled = filled((raw - mean) / std, season=self.about.get("fill", 1))[-lookback:]
        given = {"values": scaled[None].astype(np.float32), "which": np.array([number])}
        best: np.ndarray = self.graph(given)["best"][0].astype(np.float64) * std + mean
        return best


KINDS |= {"forecaster": GraphForecaster}
