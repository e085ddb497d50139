"""A run before its training: every mistake in the recipe is reported, then its directory is made.

A resumed run keeps its recipe, apart from what may change. `with_start` says what `training.start: runs/bert`
means for a recipe of another task: the encoder of that run becomes the model's (../tasks/reused.py).
`gpu_overrides` is `training.scale: gpu`. Read next: ../train/loop.py, which trains it.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from weft.config import Table, built, changed, dump, read_recipe
from weft.config.recipe import at, data_source, difference, shipped
from weft.errors import CheckpointError, ConfigError, DataError
from weft.metrics.scored import unread
from weft.nn import devices
from weft.run.loading import make_task, model_description, open_run, task_class
from weft.store import digests, files, run_directory, weights
from weft.tasks.reused import VOCABULARIES, ReusedEncoder
from weft.tasks.task import Task
from weft.train import transfer
from weft.train.checkpoints import Checkpoints
from weft.train.settings import TrainingSettings
from weft.wording import numbered

FREE = ("training", "decoding")
"""Sections that may change when a run is resumed; data and model may not."""

KEPT = (("seed",), ("optimiser", "use"), ("lora",))
"""What of `training` may not change all the same: the checkpoints depend on it."""

WHERE = ("data", "folder")
"""Where the data lies may change: a project moves. Resuming sees whether as much of it is there."""

DATA = "data"
"""The folder of a run with the data that `weft.fit` was given in memory."""


class CheckedRecipe(NamedTuple):
    """A recipe that was checked, made into objects."""

    task: Task
    settings: TrainingSettings
    plain: dict[str, Any]  # the recipe with every default
    note: str = ""  # what the user should know before training
    scaled: Sequence[str] = ()  # overrides that training.scale: gpu stands for


def check_recipe(recipe: Table, *, plugins: Collection[str] = (), begun: Path | None = None) -> CheckedRecipe:
    """Make the objects that a recipe describes, so that every mistake in it shows before any work starts.

    `begun` is the directory of a run that may have a copy of what its start was.
    """
    checked = _checked(recipe, plugins, begun)
    if checked.settings.scale != "gpu":
        return checked
    changes = gpu_overrides(checked.plain)
    if not any(key in checked.plain["data"] for key in SIZES):
        why = f"the data of this task have none of {', '.join(SIZES)}, so its batches stay as they are"
        return checked._replace(note=f"training.scale: gpu: {why}")
    if not changes:
        return checked
    for change in changes:
        recipe = changed(recipe, change)
    note = f"training.scale: gpu: {', '.join(changes)}"
    return _checked(recipe, plugins, begun)._replace(note=note, scaled=changes)


def _checked(recipe: Table, plugins: Collection[str], begun: Path | None = None) -> CheckedRecipe:
    recipe = with_start(recipe, plugins, begun)
    task, plain = make_task(recipe, plugins=plugins)
    for section, key, value, why in task.implied():
        given = recipe.section(section, optional=True).value.get(key)
        if given is None or given.value in (None, "auto"):
            recipe = changed(recipe, f"{section}.{key}={value}")
        elif why and given.value != value:
            raise given.refuse(f"expected {value}, got {given.value}: {why}; leave it out")
    if task.implied():
        task, plain = make_task(recipe, plugins=plugins)
    table, name = recipe.section("training", optional=True), plain["task"]
    settings, plain["training"] = built(table, TrainingSettings, plugins=plugins)
    task.recipe = model_description(plain)
    if "loss" not in task.better and "metric" not in (table.value or {}):
        settings = replace(settings, metric=next(iter(task.better)))
        plain["training"]["metric"] = settings.metric
    for metric in settings.metrics:
        if metric.key in task.unlike:
            raise table.value["metrics"].refuse(
                f"{metric.key}: each validation has a score of this name, {task.unlike[metric.key]}, and "
                f"weft evaluate has both; leave it out, or take another metric"
            )
        if not set(metric.reads) & set(task.validation_offers):
            where = f"a validation of the task {name}"
            raise table.value["metrics"].refuse(unread(metric, where, task.validation_offers))
    if settings.refit:
        try:
            task.check_refit()
        except ConfigError as error:
            raise table.value["refit"].refuse(str(error)) from error
    better = settings.better(task.better)
    if settings.metric not in better:
        metric = table.value["metric"] if settings.metric != TrainingSettings.metric else recipe
        raise metric.refuse(f"expected one of {', '.join(better)}, got {settings.metric!r}")
    return CheckedRecipe(task, settings, plain)


def begin_run(path: Path, recipe: Table, *, plugins: Collection[str] = ()) -> CheckedRecipe:
    """Make the run directory, or see that the recipe is the one that it was begun with.

    A run that has no checkpoint yet takes a changed recipe and begins again, so that a mistake that shows
    only when the data is read can be corrected in place.
    """
    checked = check_recipe(recipe, plugins=plugins, begun=path)
    if devices.choose(checked.settings.device).type == "cpu" and checked.settings.scale == "gpu":
        slow = (
            "training.scale: gpu: these batches are slow on a CPU; training.scale=cpu has those of the recipe"
        )
        checked = checked._replace(note="\n".join(filter(None, [checked.note, slow])))
    try:
        checked.task.check_ready()
    except CheckpointError:  # another run, of which a resumed one has its own copy
        if not _has_checkpoints(path):
            raise
    except ConfigError as error:
        section, _, sentence = str(error).partition(": ")
        if section not in recipe:
            raise
        raise recipe.section(section).refuse(sentence) from error
    except DataError as error:
        source = _unnamed_source(recipe) if "no such file" in error.why else ""
        if source:
            why = f"no such file; pass data.folder=PATH, the folder of the data: {source}"
            raise DataError(why, path=error.path) from error
        raise
    try:
        taken = {} if _has_checkpoints(path) else _start_of(checked, plugins)
        unknown = files.is_dir(path) and not files.is_file(path / "recipe.yaml")
        if unknown and any(map(foreign, path.iterdir())):
            raise ConfigError(f"{path}: is not empty and not a run directory; choose another one with --run")
        run_directory.check_links(path)
        with run_directory.lock(path):
            resumed = _has_checkpoints(path)
            if (path / "recipe.yaml").exists():
                run_directory.check_format(path)
                old = with_defaults(read_recipe(path / "recipe.yaml"), plugins)
                _check_same(path, checked, old, resumed=resumed)
                checked = as_begun(path, checked, recipe)
            else:
                run_directory.write_format(path)
            for name, content in taken.items() if not resumed else ():
                files.replace(path / name, content)
            files.replace(path / "recipe.yaml", dump(checked.plain).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror or error}); choose another directory with --run"
        ) from error
    return checked


def _unnamed_source(recipe: Table) -> str:
    """Where to get the data of an included recipe; "" for other recipes, or if data.folder was given."""
    folder = recipe.section("data").value.get("folder") if "data" in recipe else None
    file = Path(folder.place.rpartition(":")[0]) if folder is not None else Path()
    return data_source(file) if file in shipped() else ""


def _start_of(checked: CheckedRecipe, plugins: Collection[str]) -> dict[str, bytes]:
    """Files that a new run takes from another one: its weights, and what the task keeps (vocabularies).

    They are read before anything is written, so that a refusal leaves nothing.
    """
    old = checked.settings.start
    if old is None:
        return {}
    model = _before_refit(old)
    if not (old / "recipe.yaml").is_file() or not model.is_file():
        raise CheckpointError(
            f"training.start: expected a trained run, got {old}; train it first, or leave start out"
        )
    run_directory.check_links(old)
    try:
        if checked.settings.start_parts:
            return _parts_of(old, checked, plugins)
        now = digests.kept_files(old, checked.task.keeps)
        digests.check_kept(old, now, weights.read(model).fits.kept, str(model))
        kept = {one.name: one.read_bytes() for one in _kept(old, checked.task)}
        return kept | {weights.START: model.read_bytes()}
    except OSError as error:
        raise CheckpointError(f"training.start: {old} cannot be read ({error.strerror or error})") from error


def _before_refit(run: Path) -> Path:
    """The weights that have not seen the validation examples, which will judge a new training."""
    model = run / "model.safetensors"
    if weights.refit_of(model) is None:
        return model
    before = run / "checkpoints" / f"step-{weights.metadata(model)['update']:0>8}" / model.name
    if not before.is_file():
        raise CheckpointError(
            f"training.start: {run} was trained on its validation examples too (training.refit), which would "
            f"judge the new training; bring back the model before, without training: weft train "
            f"{run / 'recipe.yaml'} --run {run} training.refit=false"
        )
    return before


def as_begun(path: Path, checked: CheckedRecipe, recipe: Table) -> CheckedRecipe:
    """A resumed run with the start that it had, not one that comes too late; a new run as its recipe says.

    Every process of a training calls this, so that all train alike.
    """
    if not _has_checkpoints(path) or not files.is_file(path / "recipe.yaml"):
        return checked
    then, now = read_recipe(path / "recipe.yaml").plain().get("training") or {}, checked.plain["training"]
    first: dict[str, Any] = {name: then.get(name) or None for name in ("start", "start_parts")}
    note, late = checked.note, now["start"]
    if late is not None and first != {name: now[name] or None for name in first}:
        note = (
            f"training.start={late} is not used: {path} has checkpoints already, and continues from them; "
            f"to start from {late}, pass another --run"
        )
    rate = now["start_rate"]
    if "start_rate" not in recipe.section("training", optional=True):
        rate = then.get("start_rate", 1.0 if first["start"] else rate)  # earlier versions had no such setting
    start, parts = first["start"] and Path(first["start"]), first["start_parts"] or ()
    parts = parts if isinstance(parts, dict) else tuple(parts)
    settings = replace(checked.settings, start=start, start_parts=parts, start_rate=rate)
    recorded = {"start": first["start"], "start_parts": first["start_parts"] or [], "start_rate": rate}
    return checked._replace(settings=settings, plain={**checked.plain, "training": now | recorded}, note=note)


def _parts_of(old: Path, checked: CheckedRecipe, plugins: Collection[str]) -> dict[str, bytes]:
    """Some parts of another run's model as a file, and its vocabulary if it is named among them."""
    chosen = checked.settings.start_parts
    parts = transfer.by_part(chosen)
    other = open_run(old, device="cpu", plugins=plugins)
    before = at(read_recipe(old / "recipe.yaml").plain(), ("model",))
    transfer.check_settings(checked.plain["model"], before or {}, parts)
    found = {weights.START: transfer.pack(other.model, other.pipeline.rows(), parts, old)} if parts else {}
    if transfer.VOCABULARY in chosen:
        every = [old / name for name in VOCABULARIES if (old / name).is_file()]
        if not every:
            raise ConfigError(
                f"{transfer.SETTING}: {old} has no tokenizer.json; leave out {transfer.VOCABULARY}"
            )
        found[VOCABULARIES[0]] = every[0].read_bytes()
    return found


def _kept(path: Path, task: Task) -> list[Path]:
    """The files of a run that its task made ready."""
    return [found for pattern in task.keeps for found in path.glob(pattern)]


def _has_checkpoints(path: Path) -> bool:
    return bool(Checkpoints(path, print).updates())


def foreign(path: Path) -> bool:
    """Whether this in a directory without a recipe.yaml is another's; run.json alone was written first."""
    return not path.name.startswith(".") and path.name not in ("run.json", DATA)


def with_defaults(recipe: Table, plugins: Collection[str]) -> dict[str, Any]:
    """A recipe from before, in which a setting that was added in a later version of Weft has its default."""
    try:
        return check_recipe(recipe, plugins=plugins).plain
    except ConfigError:  # a setting that is gone, or damaged by hand
        return recipe.plain()  # type: ignore[no-any-return]


def _check_same(path: Path, checked: CheckedRecipe, old: dict[str, Any], *, resumed: bool) -> None:
    """See that a recipe fits the run; one that has no checkpoint yet fits any."""
    plain = checked.plain
    if isinstance(old.get(WHERE[0]), dict) and resumed:
        old[WHERE[0]][WHERE[1]] = at(plain, WHERE)
    if at(old, ("training", "start")) and not resumed:
        for taken_over in [path / weights.START, *_kept(path, checked.task)]:
            taken_over.unlink(missing_ok=True)
    fixed = [((section,), "a run keeps its data and its model") for section in plain if section not in FREE]
    fixed += [(("training", *keys), "a run keeps its seed, optimiser and lora") for keys in KEPT]
    for keys, reason in fixed:
        changed = difference(at(old, keys), at(plain, keys), ".".join(keys))
        if changed and resumed:
            other = numbered(path)
            fits = keys == ("data",) and not changed.startswith("data.vocabulary")
            start = (
                f"; to start from this run's model, add --run {other} training.start={path}" if fits else ""
            )
            raise ConfigError(
                f"{path}: this run was started with {changed}; {reason}, "
                f"so train the new recipe with another --run{start}"
            )
        if changed and (path / weights.START).exists():
            if keys == ("model",):
                raise ConfigError(
                    f"{path}: this run was imported with {changed}; train another model with another --run"
                )
        elif changed:
            for made in _kept(path, checked.task):
                made.unlink()


START = "training.start"


def with_start(recipe: Table, plugins: Collection[str], begun: Path | None = None) -> Table:
    """The recipe with what its `training.start` implies; unchanged if that is nothing.

    It gets the settings of that run's encoder and `training.start_parts`; the new run is one like any other,
    and its own recipe, in `begun`, knows them if the other run is gone.
    """
    plain = recipe.plain()
    start, task = at(plain, ("training", "start")), plain.get("task")
    if not isinstance(start, str) or at(plain, ("training", "start_parts")):
        return recipe
    source, kind = Path(start) / "recipe.yaml", task_class(recipe, plugins)
    if not files.is_file(source):
        own = begun and begun / "recipe.yaml"
        then = read_recipe(own).plain() if own and files.is_file(own) else {}
        known = at(then, ("training", "start")) == start and kind.started(ReusedEncoder({}, 1, "none"))
        found = {key: at(then, tuple(key.split("."))) for key in known or ()}
    else:
        other = read_recipe(source)
        there = other.plain()
        if there.get("task") == task:
            return recipe
        reused = task_class(other, plugins).encoder_of(there)
        if reused is None or (wanted := kind.started(reused)) is None:
            which = f"{start}, a run of the task {there.get('task')}, which has no encoder for others"
            which = which if reused is None else f"{start}: the task {task} cannot start with its encoder"
            raise ConfigError(
                f"{START}: expected a run of the same task, or one with an encoder over tokens, such as a "
                f"masked or language model, got {which}; name another run, or parts in {START}_parts"
            )
        found = dict(wanted)
    for key, value in found.items():
        recipe = _with(recipe, key, value, start)
    return recipe


def _with(recipe: Table, key: str, value: Any, start: str) -> Table:
    """The recipe with one setting of the other run; what the recipe says of it itself must agree."""
    section, *keys = key.split(".")
    entry = recipe.value.get(section)
    for name in keys:
        entry = entry.value.get(name) if isinstance(entry, Table) else None
    given = None if entry is None else entry.plain()
    if given and key != "training.start_parts":
        assert entry is not None
        settings = {"use": given} if isinstance(value, Mapping) and isinstance(given, str) else given
        wrong = _difference(settings, value)
        if wrong is not None:
            raise entry.refuse(
                f"expected {wrong[1]}, as in {start} ({START}), got {wrong[0]}; leave {key} out"
            )
        value = {**value, **settings} if isinstance(value, Mapping) else value
    return recipe if value is None else changed(recipe, f"{key}={json.dumps(value)}")


def _difference(given: Any, value: Any) -> tuple[str, str] | None:
    """What a recipe says and what it should say; settings of dropout may differ."""
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        for name in given:
            if "dropout" not in name and (found := _difference(given[name], value.get(name))):
                return (f"{name}: {found[0]}", f"{name}: {found[1]}")
        return None
    if isinstance(value, Mapping):
        value = value.get("use")
    return None if given == value else (json.dumps(given), "nothing" if value is None else json.dumps(value))


TOKENS, ROWS, FRAMES = 16_000, 512, 64_000
"""Target tokens an update at least; rows in tasks whose rows are not pieces of text; frames of recordings."""

SIZES = ("batch_tokens", "batch_frames", "batch_rows")
"""Settings of `data` that say how large a batch is; the first one that a recipe has decides."""

COUNTS_UPDATES = ("max_updates", "validate_every", "log_every", "freeze_updates", "monitors")


def gpu_overrides(recipe: Mapping[str, Any]) -> list[str]:
    """Overrides that make the updates of a recipe large enough for a GPU; [] if they are.

    The batches of an update become one. The shipped recipes have batches for a CPU: with fewer and larger
    updates, numbers that count updates shrink, and the learning rate grows by the square root (Malladi et al.
    2022, "On the SDEs and scaling rules for adaptive gradient algorithms"). The changed recipe needs no
    further change.

    Example:
        >>> training = {"accumulate": 2, "max_updates": 800, "optimiser": {"use": "adamw", "lr": 0.001}}
        >>> gpu_overrides({"data": {"batch_tokens": 2000}, "training": training})[:3]
        ['training.accumulate=1', 'data.batch_tokens=16000', 'training.max_updates=200']
    """
    data, training = recipe["data"], recipe["training"]
    sizes = {key: data[key] for key in SIZES if data.get(key)}
    if not sizes:
        return []
    parts, (first, size) = training["accumulate"], next(iter(sizes.items()))
    length = data.get("length", 1) if first == "batch_rows" else 1
    least = ROWS if first == "batch_rows" and not data.get("length") else TOKENS
    least = FRAMES if first == "batch_frames" else least
    factor = max(1.0, math.ceil(least / length) / (parts * size))
    if parts == 1 and factor == 1:
        return []
    found = ["training.accumulate=1"]
    found += [f"data.{key}={round(value * parts * factor)}" for key, value in sizes.items()]
    if factor > 1:
        found += _counts(training, factor)
        found += [f"training.optimiser.lr={training['optimiser']['lr'] * math.sqrt(factor):.3g}"]
    return found


def _counts(training: Mapping[str, Any], factor: float) -> Iterator[str]:
    """Settings that count updates, for so many times fewer of them."""
    counts = {name: training.get(name) for name in COUNTS_UPDATES}
    feeding = training.get("feeding") or {}
    counts["schedule.warmup"] = (training.get("schedule") or {}).get("warmup")
    counts["feeding.updates"] = feeding.get("updates")
    for name, number in counts.items():
        if number and number is not True:
            yield f"training.{name}={max(1, round(number / factor))}"
    if feeding.get("use") == "exponential":
        yield f"training.feeding.k={feeding['k'] ** factor:.6g}"
    if feeding.get("use") == "inverse_sigmoid":
        yield f"training.feeding.k={max(1.0, feeding['k'] / factor):.6g}"
