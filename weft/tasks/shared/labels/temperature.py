"""The temperature of a run's probabilities and the thresholds of its labels, in RUN/calibration.json.

They belong to one model: after more training they no longer count. Read next: sureness.py, what they change;
../../../metrics/temperature.py.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from torch import Tensor

from weft.metrics.temperature import COLDEST, HOTTEST
from weft.store import files, jsonfile

FILE = "calibration.json"


class _Saved(jsonfile.Form):
    temperature: Annotated[float, jsonfile.Meta(ge=COLDEST, le=HOTTEST)]
    model: str
    thresholds: list[Annotated[float, jsonfile.Meta(ge=0, le=1)]] = jsonfile.field(default_factory=list)


class Calibrated(NamedTuple):
    """What was fitted to the validation part of a run."""

    temperature: float = 1.0
    thresholds: Sequence[float] = ()  # one for each label; empty if a text has one class


def save(run: Path, found: Calibrated) -> None:
    """Write the temperature of the run's model, or the thresholds of its labels."""
    about: dict[str, Any] = {"temperature": found.temperature, "model": _fingerprint(run)}
    if found.thresholds:
        about["thresholds"] = list(found.thresholds)
    files.replace(run / FILE, files.to_json(about))


def load(run: Path) -> Calibrated:
    """The temperature of the run's model, 1 if it has none, and the thresholds of its labels.

    Raises:
        CheckpointError: the file is damaged.
    """
    saved = _saved(run)
    if saved is None or saved.model != _fingerprint(run):
        return Calibrated()
    return Calibrated(saved.temperature, saved.thresholds)


def outdated(run: Path | None) -> str:
    """What to tell of a run that was trained further after it was calibrated; "" of others."""
    saved = None if run is None else _saved(run)
    if run is None or saved is None or saved.model == _fingerprint(run):
        return ""
    return ", trained further since its last --calibrate, so not calibrated"


def calibrated(logp: Tensor, temperature: float) -> Tensor:
    """Log-probabilities [.., C] at a temperature."""
    return logp if temperature == 1 else (logp / temperature).log_softmax(-1)


def _saved(run: Path) -> _Saved | None:
    path = run / FILE
    advice = "remove it, or run weft evaluate --calibrate"
    return jsonfile.load(path, _Saved, advice) if files.is_file(path) else None


def _fingerprint(run: Path) -> str:
    with (run / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
