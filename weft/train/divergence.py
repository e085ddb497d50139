"""Warn when training diverges while its loss is still a finite number. Read next: guard.py."""

import math

from weft.train.guard import advice
from weft.train.settings import TrainingSettings
from weft.train.update import UpdateResult

AT_ONCE = 100.0
"""A loss above this multiple of the lowest one so far (or of 1, if larger) is divergence at once."""

LASTING = 10.0
"""A loss above this multiple for PATIENCE updates is divergence; single outliers occur in forecasting."""

PATIENCE = 10


class Divergence:
    """Compares each update's loss with the lowest one so far.

    Args:
        settings: training settings, for the advice.

    Example:
        >>> from dataclasses import replace
        >>> from weft.train.optimisers import SGD
        >>> watch = Divergence(TrainingSettings(optimiser=SGD(lr=10.0), max_epochs=1))
        >>> good = UpdateResult(3.0, 1.0, 1, 0.1, 10.0, 1.0, True)
        >>> watch.after(1, good)
        ''
        >>> watch.after(2, replace(good, total=4e30))[:38]
        'update 2: the loss is 4e+30, and was 3'
    """

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings = settings
        self._lowest = math.inf
        self._high = 0
        self._said = False

    def after(self, update: int, taken: UpdateResult) -> str:
        """The warning after an update; "" if there is nothing to report, and after the first warning.

        Args:
            update: number of the update.
            taken: its result.
        """
        if not taken.stepped or not taken.count or self._said:
            return ""
        loss = taken.total / taken.count
        self._lowest = min(self._lowest, loss)
        usual = max(1.0, abs(self._lowest))
        self._high = self._high + 1 if loss > LASTING * usual else 0
        if loss <= AT_ONCE * usual and self._high < PATIENCE:
            return ""
        self._said = True
        return (
            f"update {update}: the loss is {loss:.3g}, and was {self._lowest:.3g} at its lowest: training "
            f"diverges and is unlikely to recover; stop it and start a new run: {advice(self._settings)}"
        )
