"""Options of the command line, checked against those of the run's task."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from weft.commands.options import given_one
from weft.errors import ConfigError

PREDICTING = ("run", "file", "plot_limit", "changes", "device", "plugins", "output", "processes", "ray")
"""Options of `weft predict` that the command handles itself, for every task."""


def asked(opened: Any, command: str, given: Mapping[str, Any], common: Sequence[str]) -> dict[str, Any]:
    """The task's own options among those that the user gave.

    Args:
        opened: the run.
        command: predict or evaluate.
        given: everything click parsed; an option that was not given is None, False or empty.
        common: names of options that the command itself handles, for every task.

    Raises:
        ConfigError: the task does not have a given option.
    """
    known = opened.task.options.get(command, ())
    found = {key: value for key, value in given.items() if given_one(value)}
    for key in found:
        if key not in known and key not in common:
            takes = ", ".join(_flag(one) for one in known) or "no options of its own"
            raise ConfigError(f"{_flag(key)} is not an option of the task {opened.name}, which takes {takes}")
    return {key: value for key, value in found.items() if key in known}


def ready_options(options: dict[str, Any], run: Path, device: str, plugins: Sequence[str]) -> dict[str, Any]:
    """The options, with the runs of `--ensemble` opened, and "progress", which receives progress lines.

    A folder RUN/cycles stands for every file in it.

    Raises:
        ConfigError: such a folder has no other weights than the run, or a run is named twice.
    """
    from weft.run import open_run

    paths = [one for path in options.get("ensemble", ()) for one in _members(path, run)]
    for number, path in enumerate(paths):
        itself = path.resolve() == run.resolve() or _is_model_of(run, path)
        if itself or path.resolve() in [one.resolve() for one in paths[:number]]:
            said = f"is the model of {run}" if itself else "is named twice"
            raise ConfigError(f"--ensemble {path}: {said}, so it would count twice; leave it out")
    opened = [open_run(path, device=device, plugins=plugins) for path in paths]
    return {**options, "progress": _told} | ({"ensemble": opened} if opened else {})


def check_members(opened: Any, paths: Sequence[Path], plugins: Sequence[str]) -> None:
    """Check before hours of work that the runs of `--ensemble` fit an opened run.

    Raises:
        ConfigError: see ready_options; or a run has another task or vocabulary.
    """
    if paths:
        options = ready_options({"ensemble": paths}, opened.path, "cpu", plugins)
        opened.pipeline.predictor(opened.model, options)


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
