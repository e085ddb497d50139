"""What a run keeps of its series: names, scales, and how often their rows come (series.json).

Read next: predictor.py, which brings new tables to these scales.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.data.windows import Scale, Windows


def about(windows: Windows) -> dict[str, Any]:
    """Of the training data, as plain numbers and names."""
    table = windows.table
    frequencies = {series.frequency for series in table.series if series.frequency}
    found: dict[str, Any] = {
        "names": windows.names,
        "columns": list(table.columns),
        "frequency": frequencies.pop() if len(frequencies) == 1 else None,
        **_plain(windows.scale),
        "known": windows.known_size,
        "covariates": {"names": list(table.known), **_plain(windows.known_scale)},
    }
    if len(windows.channels.mean):
        names = [*(table.columns if windows.sees_all else ()), *table.past]
        found["channels"] = {"names": names, **_plain(windows.channels)}
    return found


def scales_of(about: Mapping[str, Any]) -> tuple[Scale, Scale]:
    """Of the known covariates and of the columns read beside, as training had them.

    Runs of version 0.4 and before did not scale what is known ahead.
    """
    channels = about.get("channels") or {"mean": [], "std": []}
    known = about.get("covariates") or {"mean": 0.0, "std": 1.0}
    return (
        Scale(np.array(known["mean"]), np.array(known["std"])),
        Scale(np.array(channels["mean"]), np.array(channels["std"])),
    )


def _plain(scale: Scale) -> dict[str, list[float]]:
    return {"mean": scale.mean.tolist(), "std": scale.std.tolist()}
