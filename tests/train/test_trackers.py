"""Trackers get names, recipe, curves and scores; nothing is sent unless asked; a failure ends no training."""

import contextlib
import importlib
import os
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.train.test_reporting import LINE
from tests.train.toy import Notes, Task, settings
from weft.errors import ConfigError
from weft.train.loop import train
from weft.train.reporting import Reporter
from weft.train.trackers import QUIET, Mlflow, Tensorboard, Tracker, Trackio, Wandb

RECIPE = {"task": "toy", "training": {"seed": 1, "optimiser": {"lr": 0.01}}}


class FakeRun:
    """A run of wandb or trackio that remembers what it is told."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.logs, self.summary, self.ended = fails, [], {}, []

    def define_metric(self, *names: str, **settings: str) -> None:
        assert (names, settings) == (("*",), {"step_metric": "update"})

    def log(self, points: dict[str, float], step: int | None = None) -> None:
        if self.fails == "log":
            raise OSError("no space left")
        self.logs.append((points.get("update", step), points))

    def finish(self, **settings: int) -> None:
        self.ended.append(settings)


class FakeClient:
    """mlflow.MlflowClient, one for each address."""

    def __init__(self, calls: list[Any], tracking_uri: str) -> None:
        self.calls = calls
        calls.append(("uri", tracking_uri))

    def get_experiment_by_name(self, name: str) -> None:
        assert name == "weft"

    def create_experiment(self, name: str) -> str:
        return "7"

    def create_run(self, experiment: str, run_name: str) -> Any:
        self.calls.append(("run", experiment, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="abc"))

    def update_run(self, name: str, status: str) -> None:
        self.calls.append(("again", name, status))

    def log_batch(self, name: str, metrics: Any = (), params: Any = ()) -> None:
        assert name == "abc" and len(params) <= 100
        self.calls += [("param", *one) for one in params]
        self.calls += [("metric", one[0], one[1], one[3]) for one in metrics]

    def set_terminated(self, name: str, status: str) -> None:
        self.calls.append(("end", name, status))


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Modules in place of the trackers' packages, with what they were asked."""
    seen = SimpleNamespace(starts=[], runs=[], calls=[], fails="")

    def init(**given: Any) -> FakeRun:
        if seen.fails == "init":
            raise RuntimeError("no login\nsecond line")
        seen.starts.append(given | {"environment": dict(os.environ)})
        seen.runs.append(FakeRun(seen.fails))
        return seen.runs[-1]

    entities = SimpleNamespace(Param=lambda *one: one, Metric=lambda *one: one)
    for name, content in {
        "wandb": {"init": init, "Settings": dict},
        "trackio": {"init": init, "finish": lambda: seen.runs[-1].finish()},
        "mlflow": {
            "MlflowClient": lambda tracking_uri: FakeClient(seen.calls, tracking_uri),
            "entities": entities,
        },
    }.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    for name in (*chain.from_iterable(QUIET.values()), "WANDB_MODE", "TRACKIO_SPACE_ID"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)  # restored after the test even if the code sets it
    return seen


def followed(tracker: Tracker, run: Path, *, update: int = 0, done: bool = True) -> Notes:
    """A training as the tracker is told of it; what the screen was told."""
    run.mkdir(exist_ok=True)
    notes = Notes()
    with tracker.report(run, RECIPE, notes) as report:
        report.started(update, True)
        report.logged(LINE)
        report.monitored(1200, {"cell/reach_1": 0.5})
        report.validated(1200, {"loss": 2.0, "bleu": float("nan")}, [], True)
        if done:
            report.finished("max_updates", 1200, {"loss": 1.5})
    return notes


def test_wandb_is_offline_unless_asked_and_gets_everything(fakes: SimpleNamespace, tmp_path: Path) -> None:
    assert followed(Wandb(), tmp_path / "my").warnings == []
    (start,), (run,) = fakes.starts, fakes.runs
    assert (start["mode"], start["project"], start["name"]) == ("offline", "weft", "my")
    assert start["config"] == RECIPE and start["dir"] == str(tmp_path / "my")
    assert start["environment"]["WANDB_ERROR_REPORTING"] == "false"
    points = dict(pair for at, one in run.logs for pair in one.items() if at == 1200)
    assert points["train/loss"] == LINE.loss and points["monitors/cell/reach_1"] == 0.5
    assert points["validation/loss"] == 2.0 and "validation/bleu" not in points  # no NaN
    assert run.summary == {"model/loss": 1.5} and run.ended == [{"exit_code": 0}]
    followed(Wandb(), tmp_path / "my", update=1200, done=False)  # resumed, then stopped
    assert fakes.starts[1]["id"] == start["id"] and fakes.runs[1].ended == [{"exit_code": 1}]
    followed(Wandb(online=True, project="p"), tmp_path / "other")
    assert (fakes.starts[2]["mode"], fakes.starts[2]["project"]) == ("online", "p")
    assert fakes.starts[2]["id"] != start["id"]


def test_mlflow_writes_into_the_run_unless_asked(fakes: SimpleNamespace, tmp_path: Path) -> None:
    assert followed(Mlflow(), tmp_path / "my").warnings == []
    calls = fakes.calls
    assert calls[0] == ("uri", (tmp_path / "my" / "mlflow").as_uri()) and calls[1] == ("run", "7", "my")
    assert ("param", "training.optimiser.lr", "0.01") in calls
    assert ("metric", "validation/loss", 2.0, 1200) in calls and ("metric", "model/loss", 1.5, 0) in calls
    assert calls[-1] == ("end", "abc", "FINISHED")
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    followed(Mlflow(uri="http://localhost:1"), tmp_path / "my", update=1200, done=False)
    assert ("again", "abc", "RUNNING") in calls and ("uri", "http://localhost:1") in calls
    assert calls[-1] == ("end", "abc", "KILLED")


def test_trackio_stays_here_unless_asked(
    fakes: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SPACE_ID", "somebody/space")
    assert followed(Trackio(), tmp_path / "my").warnings == []
    (start,), (run,) = fakes.starts, fakes.runs
    assert "TRACKIO_SPACE_ID" not in start["environment"] and os.environ["TRACKIO_SPACE_ID"]
    assert (start["name"], start["space_id"], start["resume"]) == ("my", None, "never")
    assert start["config"]["training.optimiser.lr"] == "0.01"
    assert (1200, {"validation/loss": 2.0}) in run.logs and run.logs[-1] == (None, {"model/loss": 1.5})
    followed(Trackio(space="me/space"), tmp_path / "my", update=1200)
    assert (fakes.starts[1]["space_id"], fakes.starts[1]["resume"]) == ("me/space", "allow")


@pytest.mark.parametrize("fails", ["init", "log"])
@pytest.mark.parametrize("tracker", [Wandb(), Trackio(), Tensorboard()], ids=["wandb", "trackio", "board"])
def test_a_failure_is_said_once_and_ends_nothing(
    fakes: SimpleNamespace, tmp_path: Path, tracker: Tracker, fails: str
) -> None:
    fakes.fails = fails
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "tensorboard").write_text("in the way")
    (said,) = followed(tracker, tmp_path / "my").warnings
    assert "training continues without it" in said and "second line" not in said
    notes = Notes()
    report = Reporter(notes, tracker.report(tmp_path / "my", RECIPE, notes))
    assert train(Task(), tmp_path / "my", settings(max_epochs=1), report).reason == "max_epochs"
    assert len(notes.warnings) == 1


def test_a_package_that_is_missing_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "did you mean 'wandb'" in refused(weft("train", "help-demo", "training.track=[wandbb]"))
    monkeypatch.setattr(importlib, "import_module", _missing)
    with pytest.raises(ConfigError, match=r"wandb is not installed; pip install 'weft-seq\[wandb\]'"):
        Wandb().report(tmp_path, RECIPE, Reporter())


def _missing(name: str) -> ModuleType:
    raise ModuleNotFoundError(name, name=name)


def test_tensorboard_is_the_default_and_the_older_setting_switches_it_off(tmp_path: Path) -> None:
    (usual,), others = settings(tensorboard=True).trackers, set(chain.from_iterable(QUIET.values()))
    before = others & os.environ.keys()
    assert isinstance(usual, Tensorboard)
    with usual.report(tmp_path, RECIPE, Reporter()) as report:
        report.started(0, False)
    assert others & os.environ.keys() == before and not (tmp_path / "trackers.json").exists()
    assert settings(tensorboard=False, track=(Tensorboard(),)).trackers == ()
    assert len(settings(tensorboard=False, track=(Tensorboard(), Mlflow())).trackers) == 1


@pytest.mark.slow
@pytest.mark.parametrize("tracker", [Wandb(), Mlflow()], ids=["wandb", "mlflow"])
def test_the_real_package_writes_offline(tracker: Tracker, tmp_path: Path) -> None:
    name = type(tracker).__name__.lower()
    pytest.importorskip(name, reason=f"pip install -e .[{name}]")
    with contextlib.suppress(DeprecationWarning):
        notes = followed(tracker, tmp_path / "my")
    assert notes.warnings == []
    assert any(path.is_file() for path in (tmp_path / "my" / name).rglob("*"))
