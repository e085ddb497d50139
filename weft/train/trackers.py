"""Trackers of experiments behind `training.track`: TensorBoard, Weights & Biases, MLflow, Trackio.

All write to this machine unless the recipe asks for more (`online`, `uri`, `space`). A tracker that fails is
reported once, and the training continues without it. To add one, add a class here.
Read next: reporting.py, the other reports; session.py, which opens them.
"""

import builtins
import contextlib
import importlib
import io
import math
import os
import re
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from weft.errors import ConfigError
from weft.store import files, jsonfile
from weft.train.notebook import NotebookDisplay
from weft.train.reporting import Bar, Line, LineReporter, MetricsFile, Reporter

KEPT = "trackers.json"
"""Keeps the names that trackers gave a run, so that a resumed training continues the same one."""


class TrackedTraining(NamedTuple):
    """What a tracker gets when a training starts."""

    run: Path  # directory, whose name the tracker shows
    update: int  # the number of updates so far
    recipe: Mapping[str, Any]  # with every default
    known: str  # the tracker's name of this run from an earlier start; empty for a new one

    @property
    def name(self) -> str:
        """The name to show."""
        return self.run.resolve().name

    def flat(self) -> dict[str, str]:
        """The recipe as names and texts: {"training.optimiser.lr": "0.001"}."""
        return dict(_flat(self.recipe, ""))


class TrackerRun(ABC):
    """A run of a tracker that is open."""

    name: str  # what the tracker calls it, for the next start; empty if it needs none

    @abstractmethod
    def log(self, update: int, points: Mapping[str, float]) -> None:
        """Store the values of some curves after an update."""

    @abstractmethod
    def close(self, scores: Mapping[str, float] | None) -> None:
        """End the run with the scores of its model; None if the training was stopped or has failed."""


class Tracker(ABC):
    """A tracker, as `training.track` names it.

    Example:
        >>> from weft.train.reporting import Reporter
        >>> class ScreenOnly(Tracker):
        ...     def report(self, run, recipe, screen):
        ...         return screen
        >>> screen = Reporter()
        >>> ScreenOnly().report(Path("runs/en-es"), {}, screen) is screen
        True
    """

    @abstractmethod
    def report(self, run: Path, recipe: Mapping[str, Any], screen: Reporter) -> Reporter:
        """The report that a training fills.

        Args:
            run: run directory.
            recipe: with every default.
            screen: receives one warning if the tracker fails.

        Raises:
            ConfigError: the tracker's package is not installed.
        """


class Tensorboard(Tracker):
    """TensorBoard events in RUN/tensorboard; look at them with tensorboard --logdir RUN/tensorboard.

    Example:
        >>> isinstance(Tensorboard(), Tracker)  # training.track: [tensorboard]
        True
    """

    def report(self, run: Path, recipe: Mapping[str, Any], screen: Reporter) -> Reporter:
        return TrackerReport(
            "tensorboard", self._begin, run, recipe, screen, package="tensorboardX", needed=False
        )

    def _begin(self, package: ModuleType, training: TrackedTraining) -> TrackerRun:
        folder, later = str(training.run / "tensorboard"), training.update + 1  # points that are discarded
        return _TensorboardRun(package.SummaryWriter(folder, purge_step=later, flush_secs=10))


class _TensorboardRun(TrackerRun):
    name = ""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, update: int, points: Mapping[str, float]) -> None:
        for name, value in points.items():
            self._writer.add_scalar(name, value, update)

    def close(self, scores: Mapping[str, float] | None) -> None:
        self._writer.close()


class Wandb(Tracker):
    """Weights & Biases; offline unless asked: weft writes RUN/wandb, and wandb sync sends it.

    Args:
        project: project of the run.
        online: send to the server during the training, as the login and the variables WANDB_* say.

    Example:
        >>> Wandb(project="en-es").online
        False
    """

    def __init__(self, *, project: str = "weft", online: bool = False) -> None:
        self.project, self.online = project, online

    def report(self, run: Path, recipe: Mapping[str, Any], screen: Reporter) -> Reporter:
        return TrackerReport("wandb", self._begin, run, recipe, screen)

    def _begin(self, wandb: ModuleType, training: TrackedTraining) -> TrackerRun:
        known = training.known or uuid.uuid4().hex[:12]
        opened = wandb.init(
            project=self.project,
            name=training.name,
            id=known,
            resume="allow",
            dir=str(training.run),
            config=dict(training.recipe),
            mode=os.environ.get("WANDB_MODE", "online") if self.online else "offline",
            settings=wandb.Settings(
                console="off", silent=True, disable_git=True, disable_code=True, x_disable_stats=True
            ),
        )
        opened.define_metric("*", step_metric="update")
        return _WandbRun(known, opened)


class _WandbRun(TrackerRun):
    def __init__(self, name: str, opened: Any) -> None:
        self.name, self._run = name, opened

    def log(self, update: int, points: Mapping[str, float]) -> None:
        self._run.log({"update": update, **points})

    def close(self, scores: Mapping[str, float] | None) -> None:
        self._run.summary.update({f"model/{name}": value for name, value in (scores or {}).items()})
        self._run.finish(exit_code=1 if scores is None else 0)


class Mlflow(Tracker):
    """MLflow; in RUN/mlflow unless asked: mlflow ui --backend-store-uri RUN/mlflow.

    Args:
        experiment: experiment of the run.
        uri: tracking server, such as http://localhost:5000 or sqlite:///mlflow.db; empty for RUN/mlflow.

    Example:
        >>> Mlflow(experiment="en-es").experiment
        'en-es'
    """

    def __init__(self, *, experiment: str = "weft", uri: str = "") -> None:
        self.experiment, self.uri = experiment, uri

    def report(self, run: Path, recipe: Mapping[str, Any], screen: Reporter) -> Reporter:
        return TrackerReport("mlflow", self._begin, run, recipe, screen)

    def _begin(self, mlflow: ModuleType, training: TrackedTraining) -> TrackerRun:
        uri = self.uri or (training.run.resolve() / "mlflow").as_uri()
        client = mlflow.MlflowClient(tracking_uri=uri)
        if training.known:
            client.update_run(training.known, status="RUNNING")
            return _MlflowRun(training.known, client, mlflow)
        found = client.get_experiment_by_name(self.experiment)
        experiment = found.experiment_id if found else client.create_experiment(self.experiment)
        name = client.create_run(experiment, run_name=training.name).info.run_id
        settings = [mlflow.entities.Param(key, value[:6000]) for key, value in training.flat().items()]
        for at in range(0, len(settings), 100):  # the server takes no more at once
            client.log_batch(name, params=settings[at : at + 100])
        return _MlflowRun(name, client, mlflow)


class _MlflowRun(TrackerRun):
    def __init__(self, name: str, client: Any, mlflow: ModuleType) -> None:
        self.name, self._client, self._metric = name, client, mlflow.entities.Metric

    def log(self, update: int, points: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        values = [
            self._metric(re.sub(r"[^\w./ -]", "_", key), value, now, update) for key, value in points.items()
        ]
        for at in range(0, len(values), 1000):
            self._client.log_batch(self.name, metrics=values[at : at + 1000])

    def close(self, scores: Mapping[str, float] | None) -> None:
        if scores:
            self.log(0, {f"model/{key}": value for key, value in scores.items()})
        self._client.set_terminated(self.name, "KILLED" if scores is None else "FINISHED")


class Trackio(Tracker):
    """Trackio; in its own folder on this machine (TRACKIO_DIR) unless asked: trackio show.

    Args:
        project: project of the run.
        space: Space of the Hugging Face Hub to send to, such as user/name; empty for none.

    Example:
        >>> Trackio(project="en-es").space
        ''
    """

    def __init__(self, *, project: str = "weft", space: str = "") -> None:
        self.project, self.space = project, space

    def report(self, run: Path, recipe: Mapping[str, Any], screen: Reporter) -> Reporter:
        return TrackerReport("trackio", self._begin, run, recipe, screen)

    def _begin(self, trackio: ModuleType, training: TrackedTraining) -> TrackerRun:
        local = () if self.space else ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")
        with _without(*local), contextlib.redirect_stdout(io.StringIO()):
            opened = trackio.init(
                project=self.project,
                name=training.name,
                config=training.flat(),
                resume="allow" if training.known else "never",
                space_id=self.space or None,
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        return _TrackioRun(training.name, opened, trackio.finish)


class _TrackioRun(TrackerRun):
    def __init__(self, name: str, opened: Any, end: Callable[[], None]) -> None:
        self.name, self._run, self._end = name, opened, end

    def log(self, update: int, points: Mapping[str, float]) -> None:
        self._run.log(dict(points), step=update)

    def close(self, scores: Mapping[str, float] | None) -> None:
        if scores:
            self._run.log({f"model/{name}": value for name, value in scores.items()})
        with contextlib.redirect_stdout(io.StringIO()):
            self._end()


class _Names(jsonfile.Schema):
    """The contents of trackers.json: the name of this run in each tracker."""

    names: dict[str, str] = jsonfile.field(default_factory=dict)


class TrackerReport(Reporter):
    """Sends the curves, the recipe and the scores of a training to a tracker.

    If the tracker fails, `screen` gets one warning and the training continues without it; a missing package
    ends the training if it is `needed`. `name` is also that of the extra that installs it, `package` its
    package if another.
    """

    def __init__(
        self,
        name: str,
        begin: Callable[[ModuleType, TrackedTraining], TrackerRun],
        run: Path,
        recipe: Mapping[str, Any],
        screen: Reporter,
        *,
        package: str = "",
        needed: bool = True,
    ) -> None:
        self._name, self._begin, self._run, self._recipe = name, begin, run, recipe
        package = package or name
        self._screen = screen
        self._open: TrackerRun | None = None
        self._scores: Mapping[str, float] | None = None
        for variable, value in QUIET.get(name, {}).items():
            os.environ.setdefault(variable, value)
        self._module: ModuleType | None = None
        with self._guarded():
            try:
                self._module = importlib.import_module(package)
            except ModuleNotFoundError as error:
                if error.name != package:
                    raise
                missing = f"training.track: {package} is not installed; pip install 'weft-seq[{name}]'"
                if needed:
                    raise ConfigError(missing) from None
                screen.warned(f"{missing}; training continues without it")

    def started(self, update: int, validated: bool) -> None:
        """Open the run, or the one of an earlier start of this training."""
        if self._module is None:
            return
        with self._guarded():
            kept = jsonfile.load(self._place, _Names, "remove it") if self._place.is_file() else _Names()
            known = kept.names.get(self._name, "") if update else ""
            self._open = self._begin(self._module, TrackedTraining(self._run, update, self._recipe, known))
            if self._open.name:
                kept.names[self._name] = self._open.name
                files.replace(self._place, files.to_json(jsonfile.plain(kept)))

    def logged(self, line: Line) -> None:
        self._log(line.update, line_points(line))

    def monitored(self, update: int, values: Mapping[str, float]) -> None:
        self._log(update, {f"monitors/{name}": value for name, value in values.items()})

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        self._log(update, {f"validation/{name}": score for name, score in scores.items()})

    def finished(self, reason: str, update: int, scores: Mapping[str, float]) -> None:
        """Remember the scores, for the end."""
        self._scores = finite_points(scores)

    def close(self) -> None:
        with self._guarded():
            if self._open is not None:
                self._open.close(self._scores)
        self._open = None

    @property
    def _place(self) -> Path:
        return self._run / KEPT

    def _log(self, update: int, points: Mapping[str, float]) -> None:
        with self._guarded():
            if self._open is not None:
                self._open.log(update, finite_points(points))

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001  a tracker must not end a training
            self._open = None
            why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            self._screen.warned(f"training.track: {self._name} failed ({why}); training continues without it")


def line_points(line: Line) -> dict[str, float]:
    """The values of a progress line by the names of their curves."""
    return {
        "train/loss": line.loss,
        "train/lr": line.lr,
        "train/gradient_norm": line.gradient_norm,
        "train/feeding": line.feeding,
        "speed/tokens_per_second": line.tokens_per_second,
        "speed/tokens_per_cpu_second": line.tokens_per_cpu_second,
    }


def finite_points(points: Mapping[str, float]) -> dict[str, float]:
    """The points that a curve can show: no NaN and no infinity."""
    return {name: float(value) for name, value in points.items() if math.isfinite(value)}


QUIET = {
    "mlflow": {
        "MLFLOW_ALLOW_FILE_STORE": "true",  # RUN/mlflow, for which no database is needed
        "MLFLOW_DISABLE_TELEMETRY": "true",
    },
    "wandb": {"WANDB_ERROR_REPORTING": "false"},
    "trackio": {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"},
}
"""Environment variables of a tracker's packages: write locally, send nothing. The user's own win."""


@contextlib.contextmanager
def _without(*names: str) -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(one, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(value)


def open_report(
    run: Path,
    trackers: Sequence[Tracker] = (),
    recipe: Mapping[str, Any] = MappingProxyType({}),
    screen: Reporter | None = None,
) -> Reporter:
    """The usual reports of a run: the screen, metrics.jsonl and the trackers."""
    tracked = [one.report for one in trackers]
    shown = usual_screen() if screen is None else screen
    return Reporter(
        shown, MetricsFile(run / "metrics.jsonl"), *(report(run, recipe, shown) for report in tracked)
    )


def usual_screen() -> Reporter:
    """A display in a notebook, a bar on a terminal, lines elsewhere."""
    shell = getattr(builtins, "get_ipython", None)
    if shell is not None and "ZMQ" in type(shell()).__name__:
        return NotebookDisplay()
    return Bar() if sys.stderr.isatty() else LineReporter(sys.stderr)
