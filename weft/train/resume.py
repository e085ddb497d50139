"""Resume from the newest checkpoint of a run, if the recipe and the data still fit it.

Digests of the data files are in data.json; folders with many files have one digest. Read next: ready.py;
../store/digests.py.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from weft import native
from weft.errors import CheckpointError, DataError
from weft.nn.kernels import choice
from weft.store import digests, files, jsonfile, weights
from weft.store.digests import check_kept
from weft.train import sharding
from weft.train.checkpoints import About, Checkpoints, LoadedCheckpoint
from weft.train.history import History
from weft.train.objectives.objective import Criterion
from weft.train.optimisers import optimiser_name, restore_state
from weft.train.position import BatchOrder, Position
from weft.train.settings import TrainingSettings
from weft.train.update import NonFinite
from weft.tree import State, leaves, tree_map
from weft.wording import numbered


def about(optimiser: torch.optim.Optimizer, settings: TrainingSettings) -> dict[str, Any]:
    """Settings that must not change when a run resumes; learning rate, limits and accumulation may."""
    return {"seed": settings.seed, "optimiser": optimiser_name(type(optimiser).__name__)}


def resume(
    checkpoints: Checkpoints,
    criterion: Criterion,
    optimiser: torch.optim.Optimizer,
    plan: BatchOrder,
    history: History,
    settings: TrainingSettings,
) -> tuple[Position, History, LoadedCheckpoint | None]:
    """Load model and optimiser from the newest checkpoint; without one, start at the beginning.

    Returns the position, the validations up to it, and the checkpoint.
    """
    saved = checkpoints.newest()
    if saved is None:
        return Position(), history, None
    position = saved.position
    place = str(checkpoints.path(position.update))
    check_kept(checkpoints.run, checkpoints.fits.kept, saved.fits.kept, place)
    before = {
        "seed": saved.state.about.seed,
        "optimiser": optimiser_name(saved.state.about.optimiser),
    }
    for key, now in about(optimiser, settings).items():
        then = before[key]
        if then != now:
            raise CheckpointError(
                f"{place}: expected {key} {then}, as in the earlier training, got {now}; set it back or "
                "use another --run"
            )
    if warning := moved(saved.state.about):
        checkpoints.warn(warning)
    batches = len(plan.epoch(position.epoch)) if position.index else position.batches
    if batches != position.batches:
        raise CheckpointError(
            f"{place}: expected {position.batches} batches in epoch {position.epoch}, got {batches}: "
            "the data or the batch size changed; set it back or use another --run"
        )
    _fill(saved, criterion, optimiser, place)
    # The index has the validation that followed the save; if the index is lost, that validation is repeated.
    known = [
        history.with_saved(entries).until(position.update)
        for entries in (saved.state.validations, checkpoints.index().validations)
    ]
    return position, max(known, key=lambda one: len(one.entries)), saved


def roll_back(checkpoints: Checkpoints, criterion: Criterion, optimiser: torch.optim.Optimizer) -> int:
    """Load model and optimiser from the newest checkpoint, and return its update; the data continues.

    A signal saves a checkpoint too, so a run that was interrupted shortly before may go back less far than an
    uninterrupted one.
    """
    saved = checkpoints.newest()
    if saved is None:
        raise NonFinite(
            "training.non_finite: roll_back needs a checkpoint, but there is none yet; lower "
            "training.optimiser.lr, or save sooner with training.save_every"
        )
    _fill(saved, criterion, optimiser, str(checkpoints.path(saved.position.update)))
    return saved.position.update


def _fill(
    saved: LoadedCheckpoint, criterion: Criterion, optimiser: torch.optim.Optimizer, place: str
) -> None:
    own = criterion.own
    if (own is None) != (saved.objective is None):
        with_, now = ("with", "without") if own is None else ("without", "with")
        raise CheckpointError(
            f"{place}: was trained {with_} an objective that has weights of its own, but the recipe "
            f"has one {now}; set training.objective back, or start a new --run from this one with "
            "training.start"
        )
    sharding.restore(criterion.model, saved.weights, place)
    if own is not None and saved.objective is not None:
        weights.restore(own, saved.objective, place)
    restore_state(criterion.learner, optimiser, saved.optimiser, saved.state.optimiser, place)


def carried_state(checkpoints: Checkpoints, saved: LoadedCheckpoint | None, model: nn.Module) -> State:
    """The state that the next batch starts with, from a checkpoint; None if it has none.

    Where a task with `streams` cuts a text into pieces, the model starts each piece with its state after the
    previous one. Gradients stay within a piece.
    """
    if saved is None or not saved.carried:
        return None
    found, device = saved.carried, next(model.parameters()).device
    mask = torch.ones(len(found["0"]), 1, dtype=torch.bool, device=device)
    form = model.start(None, mask)  # type: ignore[operator]
    count = sum(1 for _ in leaves(form))
    if count != len(found):
        raise CheckpointError(
            f"{checkpoints.path(saved.position.update)}: carries a state of {len(found)} tensors, the model "
            f"has {count}; use the recipe it was trained with, or another --run"
        )
    numbers = iter(range(count))
    filled: State = tree_map(lambda _: found[str(next(numbers))].to(device), form)
    return filled


SETTINGS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Environment variables that limit the instruction sets of the libraries."""


def machine() -> str:
    """What the rounding of a training depends on, as text for people."""
    compiled = native.loaded()
    code = compiled.reason if compiled.library else "none"
    limits = [f"{name}={os.environ[name]}" for name in SETTINGS if os.environ.get(name)]
    return ", ".join(
        [
            choice.processor()["model name"],
            f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})",
            f"compiled code: {code}",
            *limits,
            f"threads: {torch.get_num_threads()}",
            *choice.switched(),
        ]
    )


def moved(about: About) -> str:
    """A warning if a checkpoint is from a machine that may round differently, else ""."""
    then, now = about.machine, machine()
    if then in ("", now):
        return ""
    return (
        f"this run was trained on {then} and resumes on {now}; the result may differ from an uninterrupted "
        "run in the last digits"
    )


DATA_FILE = "data.json"
MANY = 100
"""Files of a folder, from which on they have one digest together."""


class SavedDigests(jsonfile.Schema):
    """A data.json: digests of files by path; a path that ends in / is a folder."""

    data: dict[str, str]


class DataFiles:
    """The data files of a run; until it has checkpoints (`resumes`) any data is right."""

    def __init__(self, run: Path, *, resumes: bool) -> None:
        self.run = run
        self.known: Mapping[str, str] = {}
        if resumes and files.is_file(run / DATA_FILE):
            remedy = "delete it to resume without a check of the data"
            self.known = jsonfile.load(run / DATA_FILE, SavedDigests, remedy).data

    def check_known(self) -> None:
        """Check the files that are still where they were, before they are read."""
        self._refuse(self.changed())

    def changed(self) -> "ChangedFile | None":
        """The first file that is still where it was, but has another content."""
        return self._first(
            _digests(Path(name) for name in self.known if not name.endswith("/") and Path(name).is_file())
        )

    def check(self, read: Iterable[Path]) -> None:
        """Check the files that were read, which may have moved, and write down those of a new run."""
        own = self.run.absolute()
        found = _digests(path for path in read if path.is_file() and not path.is_relative_to(own))
        self._refuse(self._first(found))
        if found and not self.known:
            jsonfile.save(self.run / DATA_FILE, {"data": found})

    def _refuse(self, file: "ChangedFile | None") -> None:
        if file is not None:
            raise CheckpointError(
                f"{file.path}: {file.what} since the training of {self.run} began; to train on it, start a "
                f"new run from this one: weft train {self.run / 'recipe.yaml'} --run {numbered(self.run)} "
                f"training.start={self.run}; to resume this one all the same, delete {self.run / DATA_FILE}"
            )

    def _first(self, found: Mapping[str, str]) -> "ChangedFile | None":
        """The first changed file; one may have moved from a folder that is not read any more.

        From folders that are still read it may not: the name of its folder may be its label.
        """
        folders = {Path(path).parent for path in found}
        moved: dict[str, set[str]] = {}
        for path, digest in self.known.items():
            if Path(path).parent not in folders:
                moved.setdefault(Path(path).name, set()).add(digest)
        for path, digest in found.items() if self.known else ():
            then = {self.known[path]} if path in self.known else moved.get(Path(path).name, set())
            if digest not in then:
                return ChangedFile(path, "has changed" if then else "is new")
        return None


class ChangedFile(NamedTuple):
    """A data file that is not as it was."""

    path: str
    what: str


def check_unchanged(folder: Path, what: str, option: str) -> None:
    """Check that runs that are compared with each other are all trained on the same data."""
    for one in sorted(folder.glob(f"**/{DATA_FILE}"))[:1]:
        if found := DataFiles(one.parent, resumes=True).changed():
            raise DataError(
                f"{found.what} since {what} began, so its scores could not be compared; remove {folder}, or "
                f"choose another {option}",
                path=found.path,
            )


def _digests(paths: Iterable[Path]) -> dict[str, str]:
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    found: dict[str, str] = {}
    for folder, inside in folders.items():
        each = {str(path): _digest(path) for path in sorted(inside)}
        if len(inside) < MANY:
            found |= each
        else:
            total = hashlib.sha256(
                "\n".join(f"{Path(path).name}\t{one}" for path, one in each.items()).encode()
            )
            found[f"{folder}/"] = total.hexdigest()
    return found


def _digest(path: Path) -> str:
    try:
        return digests.file_digest(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
