"""A run begun, or resumed: its directory, and what of the recipe may no longer change.

Read next: ../train/loop.py, which trains it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from weft.config import Table, dump, read_recipe
from weft.config.compared import at, difference
from weft.errors import CheckpointError, ConfigError
from weft.nn import devices
from weft.run.checked import Begun
from weft.run.opened import check
from weft.store import claim, files, form, weights
from weft.tasks.task import Task
from weft.train import transfer
from weft.train.checkpoints import Checkpoints

FREE = ("training", "decoding")
"""Sections that may change when a run is resumed; data and model may not."""

KEPT = (("seed",), ("optimiser", "use"))
"""What of `training` may not change all the same: the checkpoints depend on it."""

WHERE = ("data", "folder")
"""Where the data lies may change: a project moves. Resuming sees whether as much of it is there."""


def begin(path: Path, recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the run directory, or see that the recipe is the one it was begun with.

    A run that has no checkpoint yet takes a changed recipe and begins again, so that a mistake that shows
    only when the data is read can be corrected in place.

    Raises:
        ConfigError: data or model differ from those of the run, or the device is not there.
        DataError: data files are missing.
        CheckpointError: it is of another format, or cannot be written, or another process trains it.
    """
    begun = check(recipe, plugins=plugins)
    devices.choose(begun.settings.device)
    try:
        begun.task.check_ready()
    except CheckpointError:  # another run, of which a resumed one has its own copy
        if not Checkpoints(path, print).updates():
            raise
    except ConfigError as error:
        section, _, sentence = str(error).partition(": ")
        if section not in recipe:
            raise
        raise recipe.section(section).refuse(sentence) from error
    try:
        taken = {} if Checkpoints(path, print).updates() else _start_of(begun)
        unknown = files.is_dir(path) and not files.is_file(path / "recipe.yaml")
        if unknown and any(map(foreign, path.iterdir())):
            raise ConfigError(f"{path}: is not empty and not a run directory; choose another one with --run")
        claim.alone(path)
        with claim.claim(path):
            resumed = bool(Checkpoints(path, print).updates())
            if (path / "recipe.yaml").exists():
                form.check(path)
                old = completed(read_recipe(path / "recipe.yaml"), plugins)
                _check_same(path, begun, old)
                begun = _with_start_of(path, begun, old) if resumed else begun
            else:
                form.write(path)
            for name, content in taken.items() if not resumed else ():
                files.replace(path / name, content)
            files.replace(path / "recipe.yaml", dump(begun.plain).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror or error}); choose another directory with --run"
        ) from error
    return begun


def _start_of(begun: Begun) -> dict[str, bytes]:
    """Files that a new run takes from another one: its weights, and what the task keeps (vocabularies).

    They are read before anything is written, so that a refusal leaves nothing.

    Raises:
        CheckpointError: not a run directory, not yet trained, or not readable.
        ConfigError: a part that is to be taken is missing there, or has other settings.
    """
    old = begun.settings.start
    if old is None:
        return {}
    model = old / "model.safetensors"
    if not (old / "recipe.yaml").is_file() or not model.is_file():
        raise CheckpointError(
            f"training.start: expected a trained run, got {old}; train it first, or leave start out"
        )
    claim.alone(old)
    try:
        if begun.settings.start_parts:
            return _parts_of(old, begun)
        kept = {one.name: one.read_bytes() for one in _kept(old, begun.task)}
        return kept | {weights.START: model.read_bytes()}
    except OSError as error:
        raise CheckpointError(f"training.start: {old} cannot be read ({error.strerror or error})") from error


def _with_start_of(path: Path, begun: Begun, old: dict[str, Any]) -> Begun:
    """What to record for a resumed run: the start that it had, not one that comes too late."""
    names = ("start", "start_parts")
    first, now = ({name: at(one, ("training", name)) for name in names} for one in (old, begun.plain))
    start, note = now["start"], ""
    if start is not None and first != now:
        note = (
            f"training.start={start} is not used: {path} has checkpoints already, and continues from them; "
            f"to start from {start}, pass another --run"
        )
    return begun._replace(plain={**begun.plain, "training": begun.plain["training"] | first}, note=note)


def _parts_of(old: Path, begun: Begun) -> dict[str, bytes]:
    """Some parts of another run's model as a file, and its vocabulary if it is named among them."""
    chosen = begun.settings.start_parts
    parts = transfer.by_part(chosen)
    other = begun.task.trained(old)
    before = at(read_recipe(old / "recipe.yaml").plain(), ("model",))
    transfer.check_settings(begun.plain["model"], before or {}, parts)
    found = {weights.START: transfer.pack(other.model, other.pipeline.rows(), parts, old)}
    if transfer.VOCABULARY in chosen:
        vocabulary = old / "tokenizer.json"
        if not vocabulary.is_file():
            raise ConfigError(
                f"{transfer.SETTING}: {old} has no tokenizer.json; leave out {transfer.VOCABULARY}"
            )
        found[vocabulary.name] = vocabulary.read_bytes()
    return found


def _kept(path: Path, task: Task) -> list[Path]:
    """The files of a run that its task made ready."""
    return [found for pattern in task.keeps for found in path.glob(pattern)]


def foreign(path: Path) -> bool:
    """Whether this in a directory without a recipe.yaml is another's; run.json alone was written first."""
    return not path.name.startswith(".") and path.name != "run.json"


def completed(recipe: Table, plugins: Collection[str]) -> dict[str, Any]:
    """A recipe from before, in which a setting that was added in a later version of Weft has its default."""
    try:
        return check(recipe, plugins=plugins).plain
    except ConfigError:  # a setting that is gone, or damaged by hand
        return recipe.plain()  # type: ignore[no-any-return]


def _check_same(path: Path, begun: Begun, old: dict[str, Any]) -> None:
    """See that a recipe fits the run; one that has no checkpoint yet fits any."""
    plain = begun.plain
    if isinstance(old.get(WHERE[0]), dict) and Checkpoints(path, print).updates():
        old[WHERE[0]][WHERE[1]] = at(plain, WHERE)
    if at(old, ("training", "start")) and not Checkpoints(path, print).updates():
        for taken_over in [path / weights.START, *_kept(path, begun.task)]:
            taken_over.unlink(missing_ok=True)
    fixed = [((section,), "a run keeps its data and its model") for section in plain if section not in FREE]
    fixed += [(("training", *keys), "a run keeps its seed and its optimiser") for keys in KEPT]
    for keys, reason in fixed:
        changed = difference(at(old, keys), at(plain, keys), ".".join(keys))
        if changed and Checkpoints(path, print).updates():
            raise ConfigError(
                f"{path}: this run was started with {changed}; {reason}, "
                "so train the new recipe with another --run"
            )
        if changed and (path / weights.START).exists():
            if keys == ("model",):
                raise ConfigError(
                    f"{path}: this run was imported with {changed}; train another model with another --run"
                )
        elif changed:
            for made in _kept(path, begun.task):
                made.unlink()
