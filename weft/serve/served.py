"""Served runs: each with its name, its model once it has one, and its curves; taken over when they change.

A model that is still being trained changes on disk, or a glossary does. Requests that have begun are answered
by the model that they began with. Read next: translation.py; predicting.py.
"""

import copy
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from weft.config import read_recipe
from weft.errors import ConfigError, WeftError
from weft.models import Generator
from weft.run import LoadedRun, open_run
from weft.run.loading import task_class
from weft.serve.batcher import Batcher, ClientLeft, Stopped
from weft.serve.limits import Refusal, ServerLimits
from weft.store import weights
from weft.store.digests import file_digest
from weft.tasks.abilities import ContinuesText, Rewrites
from weft.tasks.predictor import Reads
from weft.tasks.seq2seq.glossary import reread

MODEL = "model.safetensors"
RELOAD_SECONDS = 2.0  # how often the files of runs are looked at
POINTS = 400  # maximum per curve, approximately
EXAMPLES = 3
LONGEST = 300  # characters of an example
LAST_BYTES = 2**20  # at the end of metrics.jsonl, where the latest samples are
KEPT = 64  # logs whose content is kept


class Version(NamedTuple):
    """Which model of a run answers."""

    update: int | None  # of the training that wrote it; None if it is unknown
    digest: str  # the first 12 hexadecimal digits of the SHA-256 of model.safetensors
    loaded: str  # UTC


class ServedRun:
    """A run directory under a name, with the model that it had when it was opened (see Reloader)."""

    def __init__(
        self, path: Path, name: str, device: str, plugins: Sequence[str], glossary: Path | None = None
    ) -> None:
        self.path = path
        self.name = name
        self.again = partial(ServedRun, path, name, device, plugins, glossary)
        """Opens the run again."""
        self.glossary = glossary
        self._keeps = _kept_by(path, plugins)
        self.state = self.now()
        self._opened: LoadedRun | None = None
        self.version: Version | None = None
        if (path / "recipe.yaml").is_file() and not (path / MODEL).is_file():
            return
        self._opened = open_run(path, device=device, plugins=plugins)
        self.version = _version(path / MODEL)
        if self.rewriter:
            self._use_glossary(self.rewriter)

    def _use_glossary(self, rewriter: Rewrites) -> None:
        if self.glossary:
            rewriter.decoding = rewriter.decoding.with_settings({"glossary": self.glossary})
        elif rewriter.decoding.glossary:
            self.glossary = rewriter.decoding.glossary
            self.state = self.now()
        if self.glossary:
            reread(self.glossary)

    def now(self) -> tuple[int, ...] | None:
        """What changes whenever a file that answers is written; None if one of them is missing."""
        names = [self.path / MODEL, self.path / "recipe.yaml", *([self.glossary] if self.glossary else [])]
        names += sorted(one for pattern in self._keeps for one in self.path.glob(pattern))
        try:
            found = [name.stat() for name in names]
        except OSError:
            return None
        return tuple(number for one in found for number in (one.st_ino, one.st_mtime_ns, one.st_size))

    @property
    def opened(self) -> LoadedRun:
        """The run with its model."""
        if self._opened is None:
            raise Refusal(409, f"{self.name}: no model yet; it is still in training")
        return self._opened

    @property
    def ready(self) -> bool:
        """Whether it can answer."""
        return self._opened is not None

    @property
    def made(self) -> int:
        """When its model was written, in seconds since 1970; the file may be gone since."""
        return self.state[1] // 10**9 if self.state else 0

    @property
    def kind(self) -> str:
        """The name of its task; "training" without a model."""
        return self.opened.name if self.ready else "training"

    @cached_property
    def reads(self) -> Reads:
        """The kind of its inputs."""
        if self.rewriter or self.continues:
            return "text"
        return self.opened.pipeline.predictor(self.opened.model).reads

    def directions(self) -> list[tuple[str, str]]:
        """(source, target) of each direction that it translates; none for other tasks."""
        return list(self.rewriter.directions()) if self.rewriter else []

    @property
    def rewriter(self) -> Rewrites | None:
        """Its pipeline if it rewrites texts with a search that can be inspected, else None."""
        pipeline = self.opened.pipeline if self.ready else None
        return pipeline if isinstance(pipeline, Rewrites) else None

    @property
    def continues(self) -> bool:
        """Whether it continues texts."""
        return self.ready and isinstance(self.opened.pipeline, ContinuesText)

    @property
    def predicts(self) -> bool:
        """Whether it answers `/predict`: translations and continuations have addresses of their own."""
        return self.ready and not self.directions() and not self.continues

    def curves(self) -> dict[str, list[list[float]]]:
        """Name to points [update, value] from metrics.jsonl, thinned to about POINTS."""
        return _curves(*_log(self.path))

    def examples(self) -> list[str]:
        """A few inputs to try, from the samples of the latest validation."""
        if not (self.ready and self.opened.task.samples_readable and self.reads == "text"):
            return []
        texts = _samples(*_log(self.path))
        if self.rewriter:
            texts = [self.rewriter.without_direction(text) for text in texts]
        found = [text for text in texts if 0 < len(text.strip()) <= LONGEST]
        return list(dict.fromkeys(found))[:EXAMPLES]


def _log(path: Path) -> tuple[Path, int, int]:
    """The metrics.jsonl of a run, its size and its time, by which what was read of it is kept."""
    log = path / "metrics.jsonl"
    try:
        about = log.stat()
    except OSError:
        return log, 0, 0
    return log, about.st_size, about.st_mtime_ns


@lru_cache(KEPT)
def _curves(log: Path, size: int, time: int) -> dict[str, list[list[float]]]:
    from weft.inspect.views.curves import read_curves

    read = read_curves(log)
    names = [name for name in ("loss", "lr", "gradient_norm") if name in read["update"]]
    found = {f"training {name}": read["update"][name] for name in names}
    found |= {f"validation {name}": points for name, points in read["validation"].items()}
    return {
        name: [list(point) for point in points[:: max(1, len(points) // POINTS)]]
        for name, points in found.items()
    }


@lru_cache(KEPT)
def _samples(log: Path, size: int, time: int) -> list[str]:
    from weft.inspect.views.curves import last_sources

    return last_sources(log, LAST_BYTES)


def _kept_by(path: Path, plugins: Sequence[str]) -> Sequence[str]:
    """Patterns of the files that the task of a run keeps; none if its recipe cannot be read."""
    try:
        return task_class(read_recipe(path / "recipe.yaml"), plugins).keeps
    except WeftError:
        return ()


def _version(model: Path) -> Version:
    digest = file_digest(model)[:12]
    update = str(weights.metadata(model).get("update", ""))
    return Version(
        int(update) if update.isdigit() else None, digest, datetime.now(UTC).isoformat(timespec="seconds")
    )


def named(
    paths: Sequence[Path], device: str, plugins: Sequence[str], glossaries: Sequence[str] = ()
) -> dict[str, ServedRun]:
    """The runs by directory name; further ones with the same name get a number."""
    names = _names(paths)
    of = _glossaries(glossaries, names)
    runs = {
        name: ServedRun(path, name, device, plugins, of.get(name) or of.get(""))
        for name, path in zip(names, paths, strict=True)
    }
    for name in of:
        able = [
            run.name for run in runs.values() if name in ("", run.name) and (run.rewriter or not run.ready)
        ]
        if not able:
            raise ConfigError(
                f"--glossary: expected a run that translates or summarises, got {name or ', '.join(names)}"
            )
    return runs


def _names(paths: Sequence[Path]) -> list[str]:
    names: list[str] = []
    for path in paths:
        base = path.resolve().name
        count = sum(name == base or name.rpartition("-")[0] == base for name in names)
        names.append(f"{base}-{count + 1}" if base in names else base)
    return names


def _glossaries(given: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Name of a run, or "" for all, to its glossary, each read once."""
    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = one.partition("=")
        name, path = (name, path) if equals and name in names else ("", one)
        if name in found:
            raise ConfigError(f"--glossary: expected one file for {name or 'all runs'}, got two")
        found[name] = Path(path)
        reread(found[name])
    return found


def stoppable(model: Generator, stopped: Stopped) -> Generator:
    """The same model, whose search raises `ClientLeft` when no client is waiting for it any more."""

    def check() -> None:
        if stopped():
            raise ClientLeft

    copied = copy.copy(model)  # shares every parameter
    copied.between_steps = check
    return copied


def find_run(runs: Mapping[str, ServedRun], name: Any, what: str = "run") -> ServedRun:
    """The run with a name, or the first run if no name is given."""
    if name is None or name == "":
        if not runs:
            raise Refusal(404, f"no {what} is served")
        return next(iter(runs.values()))
    if not isinstance(name, str) or name not in runs:
        sentence = f"unknown {what}; available: {', '.join(runs) or 'none'}"
        raise Refusal(404, sentence, param="model", code="model_not_found")
    return runs[name]


class Backend(NamedTuple):
    """What answers requests: the runs by name, the queues of complete and of streamed answers, and limits."""

    runs: dict[str, ServedRun]
    batcher: Batcher
    streams: Batcher
    limits: ServerLimits


class Reloader:
    """Looks for runs that have changed."""

    def __init__(self, runs: dict[str, ServedRun]) -> None:
        self.runs = runs
        self._failed: dict[str, object] = {}

    def changed(self) -> Iterator[ServedRun]:
        """The runs that have another model now, opened. One that cannot be opened is reported once."""
        for run in list(self.runs.values()):
            state = run.now()
            if state in (None, run.state, self._failed.get(run.name)):
                continue
            try:
                fresh = run.again()
            except Exception as error:  # noqa: BLE001  no file may end the server
                self._failed[run.name] = state
                print(f"{run.name}: the change on disk is not used: {error}", file=sys.stderr, flush=True)
                continue
            if fresh.ready:
                yield fresh

    def reject(self, runs: Iterable[ServedRun]) -> None:
        """Leave these opened runs alone until they change again."""
        self._failed |= {run.name: run.state for run in runs}

    def watch(self) -> None:
        """Replace changed runs in `runs`, in a thread, until the process ends."""

        def look() -> None:
            while not threading.Event().wait(RELOAD_SECONDS):
                for fresh in self.changed():
                    self.runs[fresh.name] = fresh

        threading.Thread(target=look, name="reloading", daemon=True).start()
