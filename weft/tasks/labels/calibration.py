"""How far the probabilities of classes or tags can be trusted, and what makes them better.

`weft evaluate --calibrate` fits a temperature, and a threshold for each label or for the rarer of two
classes, to the validation part and keeps them in RUN/calibration.json. They belong to one model: after more
training they no longer count.
Read next: ../../metrics/calibration.py.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from torch import Tensor

from weft.metrics.calibration import (
    COLDEST,
    HOTTEST,
    Calibration,
    ThresholdAnswers,
    best_threshold,
    calibration,
    f1_from,
    heated,
    kept,
)
from weft.store import files, jsonfile, weights

FILE = "calibration.json"


Share = Annotated[float, jsonfile.Meta(ge=0, le=1)]


class SavedCalibration(jsonfile.Schema):
    """A calibration.json."""

    temperature: Annotated[float, jsonfile.Meta(ge=COLDEST, le=HOTTEST)]
    model: str
    thresholds: list[Share] = jsonfile.field(default_factory=list)
    threshold: tuple[str, Share] | None = None


class ClassThreshold(NamedTuple):
    """From which probability on one of two classes is answered for the highest F1."""

    name: str
    value: float


class LabelCalibration(NamedTuple):
    """What was fitted to the validation part of a run."""

    temperature: float = 1.0
    thresholds: Sequence[float] = ()  # one for each label; empty if a text has one class
    threshold: ClassThreshold | None = None  # of the rarer of two classes

    def save(self, run: Path) -> None:
        """Write the temperature of the run's model, and the thresholds."""
        about: dict[str, Any] = {"temperature": self.temperature, "model": _fingerprint(run)}
        if self.thresholds:
            about["thresholds"] = list(self.thresholds)
        if self.threshold is not None:
            about["threshold"] = self.threshold
        files.replace(run / FILE, files.to_json(about))

    @classmethod
    def load(cls, run: Path | None) -> "LabelCalibration":
        """The temperature of the run's model, 1 if it has none, and the thresholds."""
        saved = None if run is None else _saved(run)
        if run is None or saved is None or saved.model != _fingerprint(run):
            return cls()
        threshold = None if saved.threshold is None else ClassThreshold(*saved.threshold)
        return cls(saved.temperature, saved.thresholds, threshold)


def note(run: Path | None, *, on_validation: bool) -> str:
    """What a title says of the calibration of a run: whether it is outdated, or fitted to what is scored."""
    saved = None if run is None else _saved(run)
    if run is None or saved is None:
        return ""
    if saved.model != _fingerprint(run):
        return ", trained further since its last --calibrate, so not calibrated"
    return ", to which the calibration was fitted" if on_validation else ""


def calibrated(logp: Tensor, temperature: float) -> Tensor:
    """Log-probabilities [.., C] at a temperature."""
    return logp if temperature == 1 else (logp / temperature).log_softmax(-1)


def _saved(run: Path) -> SavedCalibration | None:
    path = run / FILE
    advice = "remove it, or run weft evaluate --calibrate"
    return jsonfile.load(path, SavedCalibration, advice) if files.is_file(path) else None


def _fingerprint(run: Path) -> str:
    """The digest of the model, or of the one before that was calibrated; see train/finish.py."""
    place = run / "model.safetensors"
    if (refit := weights.refit_of(place)) is not None:
        return refit.chosen
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ThresholdScores(NamedTuple):
    """The F1 of a class that is answered from a threshold on."""

    name: str
    value: float
    f1: float
    usual: float  # F1 with 0.5
    own: bool  # whether the threshold was chosen on the texts that are scored


class Confidence(NamedTuple):
    """The probabilities of answers compared with their accuracy."""

    calibration: Calibration
    temperature: float  # of the probabilities
    before: Calibration  # with a temperature of 1
    kept: list[ThresholdAnswers]  # what is left of the answers if unsure ones are not given
    threshold: ThresholdScores | None  # of the rarer of two classes

    def lines(self, accuracy: float) -> list[str]:
        """Calibration, and advice about thresholds, beside the accuracy of all answers."""
        sure = self.calibration
        line = f"  mean confidence {sure.confidence:.3f}, accuracy {accuracy:.3f}"
        if self.temperature != 1:
            line += f"; calibration error {self.before.error:.4f} before calibration "
            line += f"(temperature {self.temperature:.3g})"
        shown = [f"{one.least:g}: {one.share:.1%} at {one.accuracy:.4f}" for one in self.kept if one.share]
        lines = [line, f"  answers with at least this probability, and their accuracy: {', '.join(shown)}"]
        if self.threshold is not None:
            name, value, f1, usual, own = self.threshold
            where = "these texts, so an upper bound" if own else "the validation texts"
            lines.append(
                f"  F1 of {name} with the threshold {value:.3g}, chosen on {where}: {f1:.4f} "
                f"(with 0.5: {usual:.4f})"
            )
        return lines

    def facts(self) -> dict[str, Any]:
        """The same as JSON data."""
        rare = None
        if self.threshold is not None:
            name, value, f1, usual, own = self.threshold
            rare = {"class": name, "value": value, "f1": f1, "usual": usual, "upper_bound": own}
        return {
            "calibration": self.calibration._asdict(),
            "temperature": self.temperature,
            "calibration_before": self.before._asdict(),
            "kept": [one._asdict() for one in self.kept if one.share],
            "threshold": rare,
        }


def confidence_of(
    probs: np.ndarray,
    answers: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    temperature: float,
    threshold: ClassThreshold | None = None,
    *,
    own: bool = False,
) -> Confidence:
    """Compare the probabilities [N, C] at a temperature, and the answers [N], with the right labels [N]."""
    number = {name: place for place, name in enumerate(classes)}
    chosen = np.array([[number[answer]] for answer in answers])
    sure = cool = np.take_along_axis(probs, chosen, 1)[:, 0]
    if temperature != 1:
        plain = heated(np.log(np.maximum(probs, 1e-30)), 1 / temperature)
        cool = np.take_along_axis(plain, chosen, 1)[:, 0]
    right = answers == labels
    return Confidence(
        calibration(sure, right),
        temperature,
        calibration(cool, right),
        kept(sure, right),
        None if threshold is None else _scored(threshold, probs[:, number[threshold.name]], labels, own),
    )


def _scored(threshold: ClassThreshold, probs: np.ndarray, labels: np.ndarray, own: bool) -> ThresholdScores:
    true = labels == threshold.name
    f1, usual = (f1_from(probs, true, least) for least in (threshold.value, 0.5))
    return ThresholdScores(*threshold, f1, usual, own)


def threshold_of(classes: Sequence[str], probs: np.ndarray, labels: np.ndarray) -> ClassThreshold | None:
    """The best threshold of the rarer of two classes, by probabilities [N, C]; None unless there are two."""
    counts = [int((labels == name).sum()) for name in classes]
    if len(classes) != 2 or not all(counts):
        return None
    rare = int(np.argmin(counts))
    return ClassThreshold(classes[rare], best_threshold(probs[:, rare], labels == classes[rare]))
