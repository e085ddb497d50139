"""Options of the command line as the settings that the run's task takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from weft.commands.options import OFFERED, given_one
from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.run import LoadedRun
    from weft.tasks.task import RequestSettings

S = TypeVar("S", bound="RequestSettings")

PREDICTING = ("run", "file", "plot_limit", "changes", "device", "plugins", "output", "processes", "ray")
"""Options of `weft predict` that the command handles itself, for every task."""


def open_asked(given: Mapping[str, Any], run: Path | None = None, device: str = "") -> "LoadedRun":
    """The run that the options of a command name, opened with the changes of --set."""
    from weft.run import open_run

    changes = [f"decoding.{change}" for change in given["changes"]]
    where = device or given["device"]
    return open_run(run or given["run"], device=where, plugins=given["plugins"], changes=changes)


def settings_for(opened: "LoadedRun", kind: type[S], given: Mapping[str, Any], common: Sequence[str]) -> S:
    """The settings that the user's options ask for."""
    known = kind.options()
    found = {key: value for key, value in given.items() if given_one(value)}
    for key in found:
        if key not in known and key not in common:
            takes = ", ".join(_flag(one) for one in known) or "no options of its own"
            raise ConfigError(f"{_flag(key)} is not an option of the task {opened.name}, which takes {takes}")
    chosen = {
        key: value for key, value in found.items() if key in known and key not in (*kind.asks, "sample")
    }
    asked = search_of(found).items()  # a task may have an nbest that is none of a search
    chosen["search"] = {key: value for key, value in asked if key == "search" or key in kind.asks}
    if "ensemble" in chosen:
        chosen["ensemble"] = members(opened.path, chosen["ensemble"], given["device"], given["plugins"])
    return kind(**chosen, progress=_told)


def members(
    run: Path, ensemble: Sequence[Path], device: str, plugins: Sequence[str]
) -> "tuple[LoadedRun, ...]":
    """The runs of `--ensemble`, opened; a folder RUN/cycles stands for every file in it."""
    from weft.run import open_run

    paths = [one for path in ensemble for one in _members(path, run)]
    for number, path in enumerate(paths):
        itself = path.resolve() == run.resolve() or _is_model_of(run, path)
        if itself or path.resolve() in [one.resolve() for one in paths[:number]]:
            said = f"is the model of {run}" if itself else "is named twice"
            raise ConfigError(f"--ensemble {path}: {said}, so it would count twice; leave it out")
    return tuple(open_run(path, device=device, plugins=plugins) for path in paths)


def search_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the search that the user's options ask for."""
    found = {key: value for key, value in given.items() if key in OFFERED and given_one(value)}
    return found | ({"search": "sample"} if given.get("sample") else {})


def check_members(opened: "LoadedRun", paths: Sequence[Path], plugins: Sequence[str]) -> None:
    """Check before hours of work that the runs of `--ensemble` fit an opened run."""
    if paths:
        given = {"ensemble": paths, "device": "cpu", "plugins": plugins}
        settings = settings_for(opened, opened.task.prediction_settings, given, ("device", "plugins"))
        opened.pipeline.predictor(opened.model, settings)


def direction_of(opened: "LoadedRun", source: str | None, target: str | None) -> tuple[str, str]:
    """The languages that a run translates from and into; one with several needs to know which."""
    from weft.tasks.abilities import Rewrites

    pipeline = opened.pipeline
    known = list(pipeline.directions()) if isinstance(pipeline, Rewrites) else []
    if not known:
        raise ConfigError(f"{opened.path}: expected a run that translates, got the task {opened.name}")
    found = [pair for pair in known if source in (None, pair[0]) and target in (None, pair[1])]
    told = bool(source or target)
    if len(found) == 1 and ("target" in opened.task.prediction_settings.options() or not told):
        return found[0]
    names = ", ".join(" to ".join(one) for one in known)
    if len(known) == 1:
        raise ConfigError(f"--source, --target: {opened.path} has one direction ({names}); leave them out")
    raise ConfigError(f"{opened.path}: translates {names}; choose one with --source and --target")


def _told(what: str, done: float, total: float | None) -> None:
    """Print what begins; not how far it is."""
    if not done and total is None:
        click.echo(what, err=True)


def _members(path: Path, run: Path) -> list[Path]:
    """The files of a folder RUN/cycles, without the one that is also the model of `run`; or the path."""
    from weft.store.weights import CYCLES

    if path.name != CYCLES or not path.is_dir() or (path / "recipe.yaml").exists():
        return [path]
    found = [one for one in sorted(path.glob("step-*.safetensors")) if not _is_model_of(run, one)]
    if not found:
        raise ConfigError(
            f"--ensemble {path}: expected weights of other cycles than the run's best, got none"
        )
    return found


def _is_model_of(run: Path, file: Path) -> bool:
    """Whether a file in RUN/cycles is the run's best model."""
    from weft.store import weights

    if not file.is_file() or file.resolve().parent.parent != run.resolve():
        return False
    return weights.metadata(file) == weights.metadata(run / "model.safetensors")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
