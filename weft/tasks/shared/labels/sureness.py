"""How far the probabilities of classes or tags can be trusted, and what to do with unsure answers.

Read next: temperature.py, what `weft evaluate --calibrate` keeps; ../../../metrics/calibration.py.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.metrics.calibration import Calibration, calibration
from weft.metrics.temperature import heated
from weft.metrics.threshold import Kept, Threshold, best_f1, kept


class Sureness(NamedTuple):
    """The probabilities of answers compared with their accuracy."""

    calibration: Calibration
    temperature: float  # of the probabilities
    before: Calibration  # with a temperature of 1
    kept: list[Kept]  # what is left of the answers if unsure ones are not given
    threshold: tuple[str, Threshold] | None  # of the rarer of two classes

    def lines(self, accuracy: float) -> list[str]:
        """Calibration, and advice about thresholds, beside the accuracy of all answers."""
        sure = self.calibration
        line = (
            f"  mean confidence {sure.confidence:.3f}, accuracy {accuracy:.3f}; "
            f"calibration error {sure.error:.4f} (10 bins)"
        )
        if self.temperature != 1:
            line += f"; {self.before.error:.4f} before calibration (temperature {self.temperature:.3g})"
        shown = [f"{one.least:g}: {one.share:.1%} at {one.accuracy:.4f}" for one in self.kept if one.share]
        lines = [line, f"  answers with at least this probability, and their accuracy: {', '.join(shown)}"]
        if self.threshold is not None:
            name, best = self.threshold
            lines.append(
                f"  F1 of {name} is highest with the threshold {best.value:.3g}: {best.f1:.4f} "
                f"(with 0.5: {best.usual:.4f})"
            )
        return lines

    def facts(self) -> dict[str, Any]:
        """The same as JSON data."""
        rare = None if self.threshold is None else {"class": self.threshold[0], **self.threshold[1]._asdict()}
        return {
            "calibration": self.calibration._asdict(),
            "temperature": self.temperature,
            "calibration_before": self.before._asdict(),
            "kept": [one._asdict() for one in self.kept if one.share],
            "threshold": rare,
        }


def sureness(
    probs: np.ndarray, answers: np.ndarray, labels: np.ndarray, classes: Sequence[str], temperature: float
) -> Sureness:
    """Compare probabilities with what is right.

    Args:
        probs: [N, C] of all classes, at the temperature.
        answers, labels: [N] the class that was answered, and the right one.
        classes: [C] of the model.
        temperature: of the probabilities.

    Example:
        >>> found = sureness(np.array([[0.9, 0.1]] * 2), np.array(["a"] * 2), np.array(["a", "b"]), "ab", 1.0)
        >>> found.calibration.error, found.kept[0].share
        (0.4, 1.0)
    """
    number = {name: place for place, name in enumerate(classes)}
    chosen = np.array([[number[answer]] for answer in answers])
    sure = cool = np.take_along_axis(probs, chosen, 1)[:, 0]
    if temperature != 1:
        plain = heated(np.log(np.maximum(probs, 1e-30)), 1 / temperature)
        cool = np.take_along_axis(plain, chosen, 1)[:, 0]
    right = answers == labels
    return Sureness(
        calibration(sure, right),
        temperature,
        calibration(cool, right),
        kept(sure, right),
        _threshold(classes, probs, labels),
    )


def _threshold(classes: Sequence[str], probs: np.ndarray, labels: np.ndarray) -> tuple[str, Threshold] | None:
    """From which probability on the rarer of two classes should be answered; None unless there are two."""
    counts = [int((labels == name).sum()) for name in classes]
    if len(classes) != 2 or not all(counts):
        return None
    rare = int(np.argmin(counts))
    return classes[rare], best_f1(probs[:, rare], labels == classes[rare])
