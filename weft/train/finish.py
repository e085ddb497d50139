"""The end of training: its outcome, and the mean of several checkpoints, kept if it beats the best one.

Late in training, the mean often scores better than each. Read next: checkpoints.py; loop.py.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError
from weft.store import weights
from weft.train.checkpoints import Checkpoints
from weft.train.history import History, ValidationScores, finite, plain
from weft.train.position import Position
from weft.train.reporting import Reporter, score_text
from weft.train.settings import TrainingSettings


class Outcome(NamedTuple):
    """How training ended."""

    reason: str  # the setting that ended it, such as max_updates, or interrupted
    update: int  # number of updates taken
    best: int = 0  # update of the best checkpoint; 0 without validation
    scores: dict[str, float] = {}  # noqa: RUF012  never changed
    mean_of: tuple[int, ...] = ()  # updates averaged into the model; empty if it is the best checkpoint
    exit_code: int = 0  # 130 after Ctrl-C, 143 after SIGTERM, 138 after SIGUSR1
    samples: tuple[Any, ...] = ()  # of the last validation; empty if this call did not validate
    refit: bool = False  # whether the model was then trained on the validation examples too


def outcome(reason: str, history: History, position: Position, left: dict[str, Any]) -> Outcome:
    """Make the outcome of a training."""
    best, of = history.best(), left.get("of", [])
    scores = {
        name: float("nan") if score is None else score for name, score in left.get("scores", {}).items()
    }
    mean_of = tuple(of) if len(of) > 1 else ()
    return Outcome(reason, position.update, best.update if best else 0, scores, mean_of)


def finish(
    model: nn.Module,
    score: Callable[[int], Any],
    checkpoints: Checkpoints,
    history: History,
    update: int,
    settings: TrainingSettings,
    report: Reporter,
) -> dict[str, Any]:
    """Average checkpoints, unless already done at this update, and keep the better model.

    Returns the updates that model.safetensors is now `of`, and its scores; nothing if there was no
    validation.
    """
    index = checkpoints.index()
    before = index.mean
    done = before is not None and (before.update, before.asked) == (update, settings.average)
    if before is not None and before.taken and not checkpoints.published():
        done = False  # model.safetensors is missing or damaged
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
    mean = mean_weights(checkpoints.load(number).weights for number in of)
    weights.restore(model, mean, "the mean")
    scores = finite(score(update).scores)
    standing = index.model  # None if checkpoints.json was lost
    again = standing is not None and standing.of == of  # the file of this mean was lost
    taken = standing is None or again or history.beats(scores, standing.scores)
    if taken:
        checkpoints.publish(model.state_dict(), of)
    tried = {"update": update, "asked": settings.average, "of": of, "scores": plain(scores), "taken": taken}
    other = "nothing" if standing is None else _name(standing.of)
    verdict = f"better than {other}, so it is" if taken else f"not better than {other}, which is"
    verdict = "restored as" if again else verdict
    report.said(f"{_name(of)}: {score_text(scores)}; {verdict} the model of the run")
    return dict(checkpoints.write_index(history, tried)["model"])


def candidates(history: History, settings: TrainingSettings) -> list[ValidationScores]:
    """The validations whose checkpoints are averaged."""
    if settings.average_of == "best":
        return history.ranked()[: settings.average]
    return list(history.entries[-settings.average :])


def wanted(history: History, settings: TrainingSettings) -> set[int]:
    """The updates whose checkpoints are kept: the best ones, and those to average."""
    chosen = history.ranked()[: settings.keep_best]
    if settings.average:
        chosen += candidates(history, settings)
    return {entry.update for entry in chosen}


def _name(updates: list[int]) -> str:
    numbers = ", ".join(f"{update:,}" for update in updates)
    return f"update {numbers}" if len(updates) == 1 else f"the mean of updates {numbers}"


def _loads(checkpoints: Checkpoints, entry: ValidationScores, report: Reporter) -> bool:
    try:
        checkpoints.load(entry.update)
    except CheckpointError as error:
        report.warned(f"{error}; the mean leaves it out")
        return False
    return True


def mean_weights(checkpoints: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, by name; integers, such as counts, are those of the last set.

    Only the sum and one set are in memory at a time.
    """
    sums: dict[str, Tensor] = {}
    last: Mapping[str, Tensor] = {}
    count = 0
    for last in checkpoints:
        count += 1
        for name, tensor in last.items():
            if tensor.is_floating_point() or tensor.is_complex():
                wide = tensor.to(torch.promote_types(tensor.dtype, torch.float64))
                sums[name] = sums[name] + wide if name in sums else wide
    return {
        name: (sums[name] / count).to(tensor.dtype) if name in sums else tensor
        for name, tensor in last.items()
    }
