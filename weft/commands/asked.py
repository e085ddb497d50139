"""Options of the command line, checked against those of the run's task."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def with_members(options: dict[str, Any], run: Path, device: str, plugins: Sequence[str]) -> dict[str, Any]:
    """The options, with the runs of `--ensemble` opened; a folder RUN/cycles is every file in it.

    Raises:
        ConfigError: such a folder has no other weights than the run.
    """
    from weft.run import open_run

    given = options.get("ensemble", ())
    paths = [one for path in given for one in _members(path, run)]
    opened = [open_run(path, device=device, plugins=plugins) for path in paths]
    return {**options, "ensemble": opened} if given else options


def _members(path: Path, run: Path) -> list[Path]:
    """The files of a folder RUN/cycles, without the one that is also the model of `run`; or the path."""
    from weft.train import weights
    from weft.train.checkpoints import CYCLES

    if path.name != CYCLES or not path.is_dir() or (path / "recipe.yaml").exists():
        return [path]
    own = weights.metadata(run / "model.safetensors") if path.resolve().parent == run.resolve() else {}
    found = [one for one in sorted(path.glob("step-*.safetensors")) if weights.metadata(one) != own]
    if not found:
        raise ConfigError(
            f"--ensemble {path}: expected weights of other cycles than the run's best, got none"
        )
    return found


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
