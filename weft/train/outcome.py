"""The result of a training: why it ended, and which model is the best. Read next: loop.py."""

from typing import Any, NamedTuple

from weft.train.history import History
from weft.train.position import Position


class Outcome(NamedTuple):
    """How training ended.

    reason: max_updates, max_epochs, max_tokens, max_minutes, max_cpu_minutes, patience or interrupted.
    update: number of updates taken.
    best: update of the best checkpoint; 0 if there was no validation.
    scores: scores of the model in model.safetensors.
    mean_of: updates averaged into that model; empty if it is the best checkpoint.
    exit_code: 0; 130 after Ctrl-C, 143 after SIGTERM, 138 after SIGUSR1.
    samples: samples of the last validation; empty if this call did not validate.
    """

    reason: str
    update: int
    best: int = 0
    scores: dict[str, float] = {}  # noqa: RUF012  never changed
    mean_of: tuple[int, ...] = ()
    exit_code: int = 0
    samples: tuple[Any, ...] = ()


def outcome(reason: str, history: History, position: Position, left: dict[str, Any]) -> Outcome:
    """Make the outcome of a training.

    Args:
        reason: why it ended.
        history: all validations.
        position: where it ended.
        left: the entry of model.safetensors in checkpoints.json.
    """
    best, of = history.best(), left.get("of", [])
    scores = {
        name: float("nan") if score is None else score for name, score in left.get("scores", {}).items()
    }
    mean_of = tuple(of) if len(of) > 1 else ()
    return Outcome(reason, position.update, best.update if best else 0, scores, mean_of)
