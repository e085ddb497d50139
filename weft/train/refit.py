"""Give back what was held out: train once more, on training and validation examples together.

The validations have chosen a number of updates. A new model takes as many, from the same initial weights,
with the same seed and the same rates, in RUN/refit; it becomes the model of the run when it is complete, so
that the model before stands until then. The scores stay those of the model before: no held-out example is
left.
Read next: loop.py, `_refit`; training_state.py, what is different in such a training.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from torch import nn

from weft.store import digests, files, jsonfile, weights
from weft.store.weights import Refit, refit_of
from weft.train.checkpoints import Checkpoints, CheckpointWriter
from weft.train.finish import mean_weights
from weft.train.history import History
from weft.train.reporting import Reporter
from weft.train.session import Session

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
    return made is not None and made.planned == chosen.planned and of == _name(chosen.updates)


@contextmanager
def refit_session(session: Session, chosen: ChosenUpdates) -> Iterator[Session]:
    """The same session with checkpoints of its own, which those of an earlier choice do not outlive."""
    folder = session.run / FOLDER / f"{_name(chosen.updates)}-of-{chosen.planned}"
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


def _name(updates: tuple[int, ...]) -> str:
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
