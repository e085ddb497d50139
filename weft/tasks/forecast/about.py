"""What a run saves about its series: names, scales and the frequency of rows (series.json).

Read next: predictor.py, which scales new tables with them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from weft.data.windows import Scale, Windows
from weft.errors import CheckpointError
from weft.store import jsonfile

_SCALE = ("mean", "std")


class SavedScale(jsonfile.Form):
    """Means and deviations of columns, and their names unless series.json has them elsewhere."""

    mean: list[jsonfile.Real]
    std: list[jsonfile.Amount]
    names: list[str] = jsonfile.field(default_factory=list)


class SavedSeries(jsonfile.Form):
    """A series.json."""

    names: Annotated[list[str], jsonfile.Meta(min_length=1)]
    mean: list[jsonfile.Real]
    std: list[jsonfile.Amount]
    known: Annotated[int, jsonfile.Meta(ge=0, le=100_000)]
    columns: list[str] = jsonfile.field(default_factory=list)
    frequency: str | None = None
    covariates: SavedScale | None = None
    channels: SavedScale | None = None


def read(path: Path) -> dict[str, Any]:
    """The series.json of a run, as `about` made it.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    remedy = "train the run again"
    saved = jsonfile.load(path, SavedSeries, remedy)
    beside, ahead = saved.channels, saved.covariates
    sizes = [("mean", saved.mean, len(saved.names)), ("std", saved.std, len(saved.names))]
    sizes += [("channels." + key, getattr(beside, key), len(beside.names)) for key in _SCALE if beside]
    sizes += [("covariates." + key, getattr(ahead, key), len(ahead.names)) for key in _SCALE if ahead]
    for key, numbers, size in sizes:
        if len(numbers) != size:
            raise CheckpointError(f"{path}: $.{key}: expected {size} numbers, got {len(numbers)}; {remedy}")
    return {key: value for key, value in jsonfile.plain(saved).items() if value is not None}


def about(windows: Windows) -> dict[str, Any]:
    """Names and scales of the training data, as plain values for JSON."""
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
    """The training scales of the known covariates and of the additional columns.

    Runs of version 0.4 and earlier did not scale the known covariates.
    """
    channels = about.get("channels") or {"mean": [], "std": []}
    known = about.get("covariates") or {"mean": 0.0, "std": 1.0}
    return (
        Scale(np.array(known["mean"]), np.array(known["std"])),
        Scale(np.array(channels["mean"]), np.array(channels["std"])),
    )


def _plain(scale: Scale) -> dict[str, list[float]]:
    return {"mean": scale.mean.tolist(), "std": scale.std.tolist()}
