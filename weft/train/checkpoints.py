"""The checkpoints of a run: written atomically, verified when read, no pickle anywhere.

    RUN/checkpoints/step-00000500/model.safetensors       weights; tied ones once
                                  optimiser.safetensors   the optimiser's state, by parameter
                                  carried.safetensors     the state for the next batch, if one is carried
                                  objective.safetensors   weights that belong to the objective, if any
                                  state.json              position, validations, versions
                                  model-00001-of-00002.safetensors, .. if parameters are sharded
                                  manifest.json           size and sha256 of all files
    RUN/checkpoints.json     the last, the best, all validations; can be rebuilt from the above
    RUN/cycles/step-00000500.safetensors  weights at the end of a cycle of the learning rate
    RUN/model.safetensors    the best weights, or the mean of several if that scored better

A checkpoint never changes; older ones are removed only after a newer one is complete. They are written in the
background, one at a time: the next save, the index entry of a validation and the end of training wait for it,
and raise its errors. Read next: sharding.py, a checkpoint by several processes; resume.py.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.store import files, jsonfile, weights
from weft.store.digests import Fits
from weft.train import sharding
from weft.train.history import History, SavedValidation, plain
from weft.train.objectives.objective import Criterion
from weft.train.optimisers import collect_state
from weft.train.position import Position
from weft.train.sharding import Shard, is_sharded, local, name
from weft.tree import State, leaves
from weft.version import __version__
from weft.wording import plural

MODEL, OPTIMISER = "model", "optimiser"
STATE, CARRIED, OBJECTIVE = "state.json", "carried.safetensors", "objective.safetensors"
FORMAT = 1


class WrongFormat(CheckpointError):
    """A checkpoint from an incompatible version; older checkpoints would not help."""


class FormatVersion(jsonfile.Schema):
    """The part of state.json that every version has: which version wrote it."""

    format: int
    weft: str = "of unknown version"


class About(jsonfile.Schema):
    """Settings that a resumed run must share, and where it was trained."""

    seed: int | None = None
    optimiser: str = ""
    precision: str = ""  # what `precision: auto` meant
    machine: str = ""  # processor, torch and threads, as text
    kernels: dict[str, str] = jsonfile.field(default_factory=dict)  # old; their precision is read


class SavedState(jsonfile.Schema):
    """The contents of a state.json."""

    position: Position
    validations: list[SavedValidation]
    optimiser: dict[str, bool | int | float | str | None]
    about: About
    parts: Annotated[int, jsonfile.Meta(ge=1, le=100_000)] = 1
    cut: dict[str, list[str]] = jsonfile.field(default_factory=dict)


class ModelOrigin(jsonfile.Schema):
    """The updates whose mean model.safetensors is, and its scores."""

    of: Annotated[list[jsonfile.Count], jsonfile.Meta(min_length=1)]
    scores: dict[str, jsonfile.Real | None]


class TriedMean(ModelOrigin):
    """A mean that was tried: at which update, of how many checkpoints, and whether it was better."""

    update: jsonfile.Count
    asked: jsonfile.Count
    taken: bool


class Index(jsonfile.Schema):
    """The contents of checkpoints.json."""

    format: int = FORMAT
    last: jsonfile.Count = 0
    best: jsonfile.Count | None = None
    metric: str = ""
    better: Literal["higher", "lower", ""] = ""
    model: ModelOrigin | None = None
    mean: TriedMean | None = None
    validations: list[SavedValidation] = jsonfile.field(default_factory=list)


def read_state(data: bytes, path: Path) -> SavedState:
    """Parse and check a state.json."""
    try:
        written = jsonfile.decode(data, FormatVersion)
        if written.format != FORMAT:
            raise WrongFormat(
                f"{path}: expected format {FORMAT}, which weft {__version__} reads, got {written.format}, "
                f"written by weft {written.weft}; use that version or another --run"
            )
        state = jsonfile.decode(data, SavedState)
    except WrongFormat:
        raise
    except ValueError as error:
        raise ValueError(f"state.json: {error}") from None
    at = state.position
    for field, value, most, what in (
        ("epoch", at.epoch, at.update, "updates"),
        ("skipped", at.skipped, at.update, "updates"),
        ("index", at.index, at.batches, "batches in the epoch"),
    ):
        if value > most:
            raise ValueError(
                f"state.json: $.position.{field}: expected at most the {most} {what}, got {value}"
            )
    if path.name != f"step-{at.update:08d}":
        raise ValueError(f"state.json: $.position.update: expected that of {path.name}, got {at.update}")
    return state


class Snapshot(NamedTuple):
    """A checkpoint in memory, or a process's part of one; training does not change it."""

    update: int
    tensors: dict[str, weights.CopiedWeights]
    """Tensors by the name of their file."""

    state: dict[str, Any] | None
    """Contents of state.json; None except in the first process."""

    part: Shard

    def contents(self, fits: Fits) -> dict[str, bytes]:
        """The contents of the files, by name; the model's says what the weights belong to."""
        found = {
            key: weights.pack(tensors, update=str(self.update), **_belonging(key, fits))
            for key, tensors in self.tensors.items()
        }
        return found if self.state is None else found | {STATE: files.to_json(self.state)}


def snapshot_of(
    criterion: Criterion,
    optimiser: torch.optim.Optimizer,
    position: Position,
    history: History,
    about: dict[str, Any],
    carried: State = None,
    part: Shard = Shard(),  # noqa: B008  never changed
) -> Snapshot:
    """Make a snapshot of a training."""
    model, own = criterion.model, criterion.own
    moments, numbers = collect_state(criterion.learner, optimiser)
    stored: dict[str, Mapping[str, Tensor]] = {MODEL: model.state_dict(), OPTIMISER: moments}
    tensors = {name(stem, part): weights.copied(_mine(whole, part)) for stem, whole in stored.items()}
    if carried is not None:
        tensors[CARRIED] = weights.copied(
            {str(number): leaf.contiguous() for number, leaf in enumerate(leaves(carried))}
        )
    if own is not None:
        tensors[OBJECTIVE] = weights.copied(own.state_dict())
    if part.rank:
        return Snapshot(position.update, tensors, None, part)
    state = {
        "format": FORMAT,
        "weft": __version__,
        "position": asdict(position),
        "validations": history.to_json(),
        "optimiser": numbers,
        "about": about,
    }
    if part.of > 1:
        state["parts"] = part.of
        state["cut"] = {
            stem: [key for key, one in whole.items() if is_sharded(one)] for stem, whole in stored.items()
        }
    return Snapshot(position.update, tensors, state, part)


def _belonging(key: str, fits: Fits) -> dict[str, Any]:
    return {"fits": jsonfile.plain(fits)} if key.startswith((f"{MODEL}.", f"{MODEL}-")) else {}


def _mine(tensors: Mapping[str, Tensor], part: Shard) -> dict[str, Tensor]:
    """This process's rows; unsharded tensors belong to the first process."""
    return {key: local(one) for key, one in tensors.items() if is_sharded(one) or not part.rank}


NEWEST = 2
"""Number of newest checkpoints kept: the last, and one to fall back on if it is damaged."""


class LoadedCheckpoint(NamedTuple):
    """All that a checkpoint holds, tensors by name."""

    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    state: SavedState
    carried: dict[str, Tensor] | None = None  # None if no state is carried
    objective: dict[str, Tensor] | None = None  # None if the objective has no weights of its own
    fits: Fits = Fits()  # what the weights belong to

    @property
    def position(self) -> Position:
        """The position of the training."""
        return self.state.position


class Checkpoints:
    """The checkpoints of one run; `warn` gets a line about a damaged one, new weights belong to `fits`."""

    def __init__(self, run: Path, warn: Callable[[str], None]) -> None:
        self.run = run
        self.fits = Fits()
        self.directory = run / "checkpoints"
        self.warn = warn

    def updates(self) -> list[int]:
        """The updates that have a checkpoint, oldest first."""
        names = (path.name for path in self.directory.glob("step-*"))
        return sorted(int(name[5:]) for name in names if name[5:].isdecimal())

    def path(self, update: int) -> Path:
        """The directory of the checkpoint after so many updates; it need not exist."""
        return self.directory / f"step-{update:08d}"

    def write(self, snapshot: Snapshot) -> None:
        """Write a checkpoint, or this process's part of it."""
        contents = snapshot.contents(self.fits)
        path = self.path(snapshot.update)
        try:
            if snapshot.part.of > 1:
                sharding.write_part(path, contents, snapshot.part)
            else:
                contents[sharding.MANIFEST] = files.to_json(sharding.sealed(contents))
                files.write_directory(path, contents)
        except OSError as error:
            left = [update for update in self.updates() if update != snapshot.update]
            older = f"the checkpoint of update {left[-1]} is kept" if left else "no older one exists"
            raise CheckpointError(
                f"{path}: could not be saved ({error.strerror or error}) and {older}; "
                "free some space and run the same command again"
            ) from error

    def load(self, update: int) -> LoadedCheckpoint:
        """Load and verify a checkpoint."""
        path = self.path(update)
        try:
            sealed = jsonfile.decode(jsonfile.read_bytes(path / sharding.MANIFEST), dict[str, sharding.Seal])
            state = read_state(sharding.read_part(path, STATE, sealed), path)
            count = state.parts
            models, optimisers = (
                [
                    sharding.read_part(path, sharding.name(stem, Shard(rank, count)), sealed)
                    for rank in range(count)
                ]
                for stem in (MODEL, OPTIMISER)
            )
            others = [
                sharding.read_part(path, key, sealed) if key in sealed else None
                for key in (CARRIED, OBJECTIVE)
            ]
        except OSError as error:
            what = Path(error.filename).name if error.filename else "a file"
            raise CheckpointError(f"{path}: is damaged ({what}: {error.strerror})") from error
        except WrongFormat:
            raise
        except ValueError as error:
            raise CheckpointError(f"{path}: is damaged ({error})") from error
        try:
            stored = [weights.unpack_stored(data) for data in models]
            model = sharding.joined([one.tensors for one in stored], state.cut.get(MODEL, []))
            optimiser = sharding.joined(
                [weights.unpack(data) for data in optimisers], state.cut.get(OPTIMISER, [])
            )
            rest = [None if data is None else weights.unpack(data) for data in others]
        except (ValueError, KeyError, RuntimeError) as error:  # sharded parts that do not match
            raise CheckpointError(f"{path}: is damaged ({error})") from error
        weights.check_finite(model, str(path))
        carried, objective = rest
        return LoadedCheckpoint(model, optimiser, state, carried, objective, stored[0].fits)

    def newest(self) -> LoadedCheckpoint | None:
        """The newest checkpoint that can be loaded, or None; warns about damaged ones."""
        files.remove_leftovers(self.run)
        files.remove_leftovers(self.directory)
        damaged = ""
        for update in reversed(self.updates()):
            try:
                return self.load(update)
            except WrongFormat:
                raise
            except CheckpointError as error:
                damaged = str(error)
                self.warn(f"{damaged}; trying the one before it")
        if damaged:
            raise CheckpointError(
                f"{self.directory}: no checkpoint can be loaded, the last one tried: {damaged}; "
                "restore one from a copy, or train again with another --run"
            )
        return None

    def index(self) -> Index:
        """The contents of checkpoints.json; empty if missing or damaged, since it can be rebuilt."""
        try:
            text = jsonfile.read_bytes(self.run / "checkpoints.json")
            known = jsonfile.decode(text, FormatVersion).format == FORMAT
            return jsonfile.decode(text, Index) if known else Index()
        except FileNotFoundError:
            return Index()
        except (OSError, ValueError) as error:
            self.warn(f"{self.run / 'checkpoints.json'}: cannot be read ({error}); it will be rewritten")
            return Index()

    def model(self) -> dict[str, Any]:
        """The updates that model.safetensors is `of`, and its scores; empty before the first validation."""
        made = self.index().model
        return {} if made is None else jsonfile.plain(made)

    def write_index(self, history: History, mean: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write checkpoints.json, make model.safetensors the best model, and return what was written.

        Its `model` has the updates that model.safetensors is `of`, with its scores: the best checkpoint, or a
        mean as long as no checkpoint scores better.
        """
        best, updates, old = history.best(), self.updates(), self.index()
        last = updates[-1] if updates else 0
        # Entries of later updates are left over from a checkpoint that is damaged now.
        model = _until(last, old.model)
        if mean and mean["taken"]:
            model = {"of": mean["of"], "scores": mean["scores"]}
        elif (
            best and best.update in updates and (model is None or history.beats(best.scores, model["scores"]))
        ):
            model = {"of": [best.update], "scores": plain(best.scores)}
        index = {
            "format": FORMAT,
            "last": last,
            "best": best.update if best else None,
            "metric": history.metric,
            "better": "higher" if history.higher else "lower",
            "model": model,
            "mean": mean or _until(last, old.mean),
            "validations": history.to_json(),
        }
        self._replace("checkpoints.json", files.to_json(index))
        if model and len(model["of"]) == 1 and self.published() != str(model["of"][0]):
            self._publish(model["of"][0])
        return index

    def publish(self, model: Mapping[str, Tensor], updates: Iterable[int], **about: Any) -> None:
        """Write weights, the mean of these updates, as the model of the run."""
        name = "+".join(str(update) for update in updates)
        packed = weights.pack(model, update=name, fits=jsonfile.plain(self.fits), **about)
        self._replace("model.safetensors", packed)

    def keep_cycle(self, update: int) -> None:
        """Keep the weights of a checkpoint as the end of a cycle of the learning rate, for an ensemble."""
        (self.run / weights.CYCLES).mkdir(exist_ok=True)
        self._publish(update, f"{weights.CYCLES}/{self.path(update).name}.safetensors")

    def _publish(self, update: int, name: str = "model.safetensors") -> None:
        path = self.path(update)
        whole = path / sharding.name(MODEL, Shard())
        if whole.exists():
            self._replace(name, whole.read_bytes())
        elif path.exists():
            saved = self.load(update)
            packed = weights.pack(saved.weights, update=str(update), fits=jsonfile.plain(saved.fits))
            self._replace(name, packed)

    def published(self) -> str:
        """The update in model.safetensors, or the updates of a mean, joined by +."""
        return str(weights.metadata(self.run / "model.safetensors").get("update", ""))

    def keep(self, wanted: Iterable[int]) -> None:
        """Remove all checkpoints except these and the newest ones."""
        updates = self.updates()
        for update in set(updates[:-NEWEST]) - set(wanted):
            try:
                files.remove_directory(self.path(update))
            except OSError as error:
                self.warn(f"{self.path(update)}: could not be removed ({error.strerror})")

    def _replace(self, name: str, data: bytes) -> None:
        try:
            files.replace(self.run / name, data)
        except OSError as error:
            raise CheckpointError(
                f"{self.run / name}: could not be written ({error.strerror or error}) and is unchanged; "
                "free some space and run the same command again"
            ) from error


def _until(last: int, record: ModelOrigin | None) -> dict[str, Any] | None:
    return jsonfile.plain(record) if record is not None and max(record.of) <= last else None


class CheckpointWriter:
    """Writes the checkpoints of a run; the first process removes old ones."""

    def __init__(self, checkpoints: Checkpoints, *, background: bool, first: bool) -> None:
        self.checkpoints = checkpoints
        self._background = background
        self._first = first
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._wanted: list[int] = []
        self.held_seconds = 0.0
        self.written = 0

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.join()
        if error is None:
            self.wait()

    def save(self, copy: Callable[[], Snapshot], wanted: Iterable[int]) -> None:
        """Write a checkpoint; afterwards, remove older ones that are not wanted."""
        self.wait()
        self._wanted = list(wanted)
        begun = time.perf_counter()
        snapshot = copy()
        if self._background:
            thread = threading.Thread(target=self._write, args=(snapshot,), name="weft-saving")
            try:
                thread.start()
            except RuntimeError:  # the system cannot start another thread: write in this one
                pass
            else:
                self._thread = thread
                self.held_seconds += time.perf_counter() - begun
                return
        self.checkpoints.write(snapshot)
        self._finished(begun)

    def wait(self) -> None:
        """Wait until the last checkpoint is written."""
        if self._thread is None:
            return
        begun = time.perf_counter()
        self._thread.join()
        self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self._finished(begun)

    def sentence(self, seconds: float) -> str:
        """How many checkpoints; of a training of more than 10 seconds also how long it waited for them."""
        said = f"{plural(self.written, 'checkpoint')} written"
        if seconds < 10:
            return said
        share = 100 * self.held_seconds / seconds
        return f"{said}; training waited {self.held_seconds:.2f} s for saving ({share:.2f} % of its time)"

    def _finished(self, begun: float) -> None:
        self.written += 1
        if self._first:
            self.checkpoints.keep(self._wanted)
        self.held_seconds += time.perf_counter() - begun

    def _write(self, snapshot: Snapshot) -> None:
        try:
            self.checkpoints.write(snapshot)
        except BaseException as error:  # noqa: BLE001  raised again in the training thread
            self._error = error
