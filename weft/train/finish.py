"""The end of training: its outcome, the mean of several checkpoints, and `training.refit`.

Late in training, the mean of checkpoints often scores better than each; it is kept if it beats the best one.

A refit gives back what was held out. The validations have chosen a number of updates. A new model takes as
many on training and validation examples together, from the same initial weights, with the same seed and the
same rates, in RUN/refit; it becomes the model of the run when it is complete, so that the model before stands
until then. The scores stay those of the model before: no held-out example is left. Read next: checkpoints.py;
loop.py, `_refit`; training_state.py, what is different in such a training.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError
from weft.store import digests, files, jsonfile, weights
from weft.store.weights import Refit, refit_of
from weft.train.checkpoints import Checkpoints, CheckpointWriter
from weft.train.history import History, ValidationScores, finite, plain
from weft.train.position import Position
from weft.train.reporting import Reporter, score_text
from weft.train.session import Session
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


FOLDER = "refit"


class ChosenUpdates(NamedTuple):
    """What the validations of a training have chosen."""

    updates: tuple[int, ...]  # whose model it is, or the mean of whose models
    planned: int  # of the whole training by its limits; 0 without limits
    history: History  # which a schedule may read

    @property
    def last(self) -> int:
        """Number of updates to take."""
        return max(self.updates)

    def done(self, update: int) -> float:
        """The finished share of the planned training, which the rates depend on."""
        return min(1.0, update / self.planned) if self.planned else 0.0


def is_published(run: Path, chosen: ChosenUpdates) -> bool:
    """Whether the model of the run is already what this choice gives."""
    place = run / "model.safetensors"
    made, of = refit_of(place), weights.metadata(place).get("update", "")
    return made is not None and made.planned == chosen.planned and of == _joined(chosen.updates)


@contextmanager
def refit_session(session: Session, chosen: ChosenUpdates) -> Iterator[Session]:
    """The same session with checkpoints of its own, which those of an earlier choice do not outlive."""
    folder = session.run / FOLDER / f"{_joined(chosen.updates)}-of-{chosen.planned}"
    checkpoints = Checkpoints(folder, session.report.warned)
    fits = session.checkpoints.fits
    whole = digests.kept_files(session.run, ())  # with those that the pipeline was widened by
    checkpoints.fits = digests.Fits(kept={**fits.kept, **whole}, recipe=fits.recipe)
    with session.first_before_others():
        if session.processes.first:
            for other in (session.run / FOLDER).glob("*"):
                if other != folder:
                    files.remove_directory(other)
            folder.mkdir(parents=True, exist_ok=True)
    background, first = session.settings.save_in_background, session.processes.first
    with CheckpointWriter(checkpoints, background=background, first=first) as saving:
        yield replace(session, saving=saving, report=_Spoken(session.report, chosen.last))


def publish(run: Path, source: Checkpoints, chosen: ChosenUpdates, model: nn.Module) -> None:
    """Fill a model with the weights of a refit, make it the model of the run, and remove the checkpoints."""
    place = run / "model.safetensors"
    before = refit_of(place)
    digest = digests.file_digest(place) if before is None else before.chosen
    found = mean_weights(source.load(update).weights for update in chosen.updates)
    weights.restore(model, found, str(source.run))
    target = Checkpoints(run, source.warn)
    target.fits = source.fits
    target.publish(model.state_dict(), chosen.updates, refit=jsonfile.plain(Refit(chosen.planned, digest)))
    files.remove_directory(run / FOLDER)


def take_back(checkpoints: Checkpoints) -> None:
    """Remove a refit from a run: the end of the training writes the model that was chosen again."""
    place = checkpoints.run / "model.safetensors"
    if refit_of(place) is not None:
        place.unlink()


def _joined(updates: tuple[int, ...]) -> str:
    return "+".join(map(str, updates))


class _Spoken(Reporter):
    """Passes on sentences and progress only: the curves of the run are those of the training before."""

    def __init__(self, report: Reporter, updates: int) -> None:
        super().__init__()
        self._report, self._updates = report, updates

    def said(self, text: str) -> None:
        self._report.said(text)

    def warned(self, text: str) -> None:
        self._report.warned(text)

    def progress(self, what: str, done: float, total: float | None = None) -> None:
        self._report.progress(what, done, total)

    def moved(self, update: int, done: float) -> None:
        self._report.progress("training on all examples", update, self._updates)

    def ending(self) -> None:
        self._report.ending()
