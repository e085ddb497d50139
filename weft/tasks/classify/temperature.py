"""The temperature of a run's probabilities, in RUN/calibration.json.

It belongs to one model: after more training it no longer counts. Read next: ../../metrics/temperature.py.
"""

import hashlib
from pathlib import Path
from typing import Annotated

from weft import files, jsonfile
from weft.metrics.temperature import COLDEST, HOTTEST

FILE = "calibration.json"


class _Saved(jsonfile.Form):
    temperature: Annotated[float, jsonfile.Meta(ge=COLDEST, le=HOTTEST)]
    model: str


def save(run: Path, temperature: float) -> None:
    """Write the temperature of the run's model."""
    about = {"temperature": temperature, "model": _fingerprint(run)}
    files.replace(run / FILE, files.to_json(about))


def load(run: Path) -> float:
    """The temperature of the run's model; 1 if it has none.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not files.is_file(run / FILE):
        return 1.0
    saved = jsonfile.load(run / FILE, _Saved, "remove it, or run weft evaluate --calibrate")
    return saved.temperature if saved.model == _fingerprint(run) else 1.0


def _fingerprint(run: Path) -> str:
    with (run / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
