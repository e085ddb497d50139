"""The end of training: average several checkpoints, and keep the mean if it scores better than the best one.

Read next: averaging.py, checkpoints.py.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from weft.errors import CheckpointError
from weft.train import averaging, weights
from weft.train.checkpoints import Checkpoints
from weft.train.history import History, Scored, finite, plain
from weft.train.reporting import Report
from weft.train.screen import score_text
from weft.train.settings import Settings


def finish(
    model: nn.Module,
    score: Callable[[int], Any],
    checkpoints: Checkpoints,
    history: History,
    update: int,
    settings: Settings,
    report: Report,
) -> dict[str, Any]:
    """Average checkpoints, unless that was done at this update before, and keep the better model.

    Args:
        model: receives the averaged weights.
        score: validates the model as it is, after an update.
        checkpoints: of the run.
        history: all validations.
        update: the last one.
        settings: how many to average, and which.
        report: told which model was kept.

    Returns:
        What model.safetensors is now: `of` which updates, and its scores; empty if none was validated.
    """
    index = checkpoints.index()
    before = index.mean
    done = before is not None and (before.update, before.asked) == (update, settings.average)
    if before is not None and before.taken and not checkpoints.published():
        done = False  # model.safetensors is missing or damaged: make it again
    if settings.average < 2 or done or not history.entries:
        return checkpoints.model()
    kept = [entry for entry in candidates(history, settings) if _loads(checkpoints, entry, report)]
    if len(kept) < 2:
        report.said(
            f"the model is the best checkpoint: training.average: {settings.average} needs at least 2 "
            f"validated checkpoints, found {len(kept)}"
        )
        return checkpoints.model()
    of = sorted(entry.update for entry in kept)
    mean = averaging.mean(checkpoints.load(number).weights for number in of)
    weights.restore(model, mean, "the mean")
    scores = finite(score(update).scores)
    standing = index.model  # none where checkpoints.json was lost
    again = standing is not None and standing.of == of  # the file of this very mean was lost
    taken = standing is None or again or history.beats(scores, standing.scores)
    if taken:
        checkpoints.publish(model, of)
    tried = {"update": update, "asked": settings.average, "of": of, "scores": plain(scores), "taken": taken}
    other = "nothing" if standing is None else _name(standing.of)
    verdict = f"better than {other}, so it is" if taken else f"not better than {other}, which is"
    verdict = "made again, it is" if again else verdict
    report.said(f"{_name(of)}: {score_text(scores)}; {verdict} the model of the run")
    return dict(checkpoints.write_index(history, tried)["model"])


def candidates(history: History, settings: Settings) -> list[Scored]:
    """The validations whose checkpoints are averaged."""
    if settings.average_of == "best":
        return history.ranked()[: settings.average]
    return list(history.entries[-settings.average :])


def wanted(history: History, settings: Settings) -> set[int]:
    """The updates whose checkpoints are kept: the best, and those to be averaged."""
    chosen = history.ranked()[: settings.keep_best]
    if settings.average:
        chosen += candidates(history, settings)
    return {entry.update for entry in chosen}


def _name(updates: list[int]) -> str:
    numbers = ", ".join(f"{update:,}" for update in updates)
    return f"update {numbers}" if len(updates) == 1 else f"the mean of updates {numbers}"


def _loads(checkpoints: Checkpoints, entry: Scored, report: Report) -> bool:
    try:
        checkpoints.load(entry.update)
    except CheckpointError as error:
        report.warned(f"{error}; the mean is made without it")
        return False
    return True
