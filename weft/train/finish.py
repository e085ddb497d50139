"""The end of training: the mean of several checkpoints is tried, and taken if it scores better.

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
) -> dict[str, Any] | None:
    """Try the mean, unless that was done at this update before; the run's model is the better one.

    Args:
        model: gets the weights of the mean.
        score: validates the model as it is, after an update.
        checkpoints: of the run.
        history: every validation.
        update: the last one.
        settings: how many to average, and which.
        report: told which was taken.

    Returns:
        What was tried: its scores, `of` which updates it is the mean, and whether it was `taken`; nothing
        where the settings ask for no mean.
    """
    best = history.best()
    if settings.average < 2 or best is None:
        return None
    before: dict[str, Any] | None = checkpoints.index().get("mean")
    if before is not None and before["update"] == update and before["asked"] == settings.average:
        return before
    chosen = candidates(history, settings)
    kept = [entry for entry in chosen if _loads(checkpoints, entry, report)]
    if len(kept) < 2:
        report.said(f"no mean was tried: {len(kept)} checkpoints are there, 2 are needed")
        return None
    of = sorted(entry.update for entry in kept)
    mean = averaging.mean(checkpoints.load(number).weights for number in of)
    weights.restore(model, mean, "the mean")
    scores = finite(score(update).scores)
    taken = history.better(scores[history.metric], history.score(best))
    tried = {"update": update, "asked": settings.average, "of": of, "scores": plain(scores), "taken": taken}
    if taken:
        checkpoints.publish(mean, of)
    checkpoints.write_index(history, tried)
    report.said(
        f"the mean of updates {', '.join(map(str, of))}: {score_text(scores)}; "
        + ("better than" if taken else "not better than")
        + f" update {best.update} with {history.metric} {history.score(best):.3f}, "
        + ("so it is the model of the run" if taken else "which is the model of the run")
    )
    return tried


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


def _loads(checkpoints: Checkpoints, entry: Scored, report: Report) -> bool:
    try:
        checkpoints.load(entry.update)
    except CheckpointError as error:
        report.warned(f"{error}; the mean is made without it")
        return False
    return True
