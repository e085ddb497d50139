"""The validations so far, and what is computed from them: the best one, patience, the schedule's state.

Only scores are stored; the rest is recomputed, so a resumed run always agrees with them.
Read next: checkpoints.py.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from weft.store import jsonfile
from weft.train.schedules import Schedule, ScheduleState


class SavedValidation(jsonfile.Schema):
    """One validation, as stored in a file."""

    update: jsonfile.Count
    scores: dict[str, jsonfile.Real | None]


class ValidationScores(NamedTuple):
    """The scores of a validation, by name, after so many updates."""

    update: int
    scores: dict[str, float]


class History(NamedTuple):
    """Validations in order, judged by one score."""

    metric: str  # name of the score
    higher: bool  # whether higher is better
    entries: tuple[ValidationScores, ...] = ()

    def add(self, update: int, scores: Mapping[str, float]) -> "History":
        """A history with one more validation."""
        return self._replace(entries=(*self.entries, ValidationScores(update, dict(scores))))

    def has(self, update: int) -> bool:
        """Whether this update was validated."""
        return any(entry.update == update for entry in self.entries)

    def until(self, update: int) -> "History":
        """A history without the validations after an update."""
        return self._replace(entries=tuple(entry for entry in self.entries if entry.update <= update))

    def score(self, entry: ValidationScores) -> float:
        """The score of an entry by the metric; NaN if it has none."""
        return entry.scores.get(self.metric, math.nan)

    def beats(self, one: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
        """Whether a set of scores beats another by the metric, or by the loss if both are 0 by the metric.

        NaN and null never win and always lose.
        """
        return self._rank(one) < self._rank(other)

    def silent(self) -> bool:
        """Whether the metric was 0 in all of several validations, so that the loss chooses among them."""
        known = [self.score(entry) == 0 and "loss" in entry.scores for entry in self.entries]
        return self.higher and len(known) > 1 and all(known)

    def ranked(self) -> list[ValidationScores]:
        """The entries, best first; ties in order of time."""
        return sorted(self.entries, key=lambda entry: self._rank(entry.scores))

    def best(self) -> ValidationScores | None:
        """The validation with the best score, the earliest of a tie; None before the first validation."""
        return min(self.entries, key=lambda entry: self._rank(entry.scores), default=None)

    def waited(self) -> int:
        """Validations since the best one."""
        best = self.best()
        return 0 if best is None else len(self.entries) - 1 - self.entries.index(best)

    def schedule_state(self, schedule: Schedule) -> ScheduleState:
        """The state of a schedule after these scores."""
        state = schedule.start()
        for entry in self.entries:
            state = schedule.observe(state, self.score(entry), self.higher)
        return state

    def to_json(self) -> list[dict[str, Any]]:
        """The entries as JSON; non-finite scores become null."""
        return [{"update": entry.update, "scores": plain(entry.scores)} for entry in self.entries]

    def with_saved(self, entries: Iterable[SavedValidation]) -> "History":
        """A history with entries from a file."""
        read = [
            ValidationScores(entry.update, {key: _number(value) for key, value in entry.scores.items()})
            for entry in entries
        ]
        return self._replace(entries=tuple(read))

    def _rank(self, scores: Mapping[str, float | None]) -> tuple[float, float]:
        """The lowest is best. A score of 0 says only that nothing is right yet, so the loss ranks those."""
        score, loss = (_number(scores.get(name)) for name in (self.metric, "loss"))
        if math.isnan(score):
            return math.inf, 0.0
        if not self.higher:
            return score, 0.0
        return -score, 0.0 if score else math.inf if math.isnan(loss) else loss


def plain(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Scores as JSON; non-finite ones become null."""
    return {key: float(value) if math.isfinite(value) else None for key, value in scores.items()}


def finite(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores as read back from a file, so that decisions now and after a resume agree."""
    return {key: _number(value) for key, value in plain(scores).items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
