"""Train, resume, check and open models from Python: `weft.fit` and its neighbours.

    model = weft.fit("classify", frame, text="text", label="queue")

does what `weft init classify` and `weft train` do, with the same recipe, checks and weights; the data is kept
in RUN/data. Read next: tasks/init.py, the options of each task; run/training.py, a run before its training.
"""

import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import weft.tasks
from weft import rooms
from weft.config import Table, read_recipe
from weft.config.plugins import named_part
from weft.config.shipped import find_recipe
from weft.data.frames import as_file, zone_of
from weft.data.report import Report
from weft.errors import CheckpointError, ConfigError, DataError, DataWarning
from weft.run.loading import load
from weft.run.train import train_run
from weft.run.training import DATA, CheckedRecipe
from weft.store import files
from weft.tasks.init import Init
from weft.tasks.predictor import Predictor
from weft.tasks.task import Task
from weft.train.reporting import Reporter
from weft.train.trackers import open_report, usual_screen
from weft.tune.candidates import take_over
from weft.tune.recipes import new_recipe
from weft.wording import close_name, numbered


def fit(
    task: str | Path,
    train: Any = None,
    *,
    valid: Any = None,
    test: Any = None,
    run: str | Path | None = None,
    plugins: Collection[str] = (),
    progress: bool = True,
    **settings: Any,
) -> Predictor[Any]:
    """Train a model on a table, a list or files, and open it.

    The recipe is the one that `weft init TASK` writes for the same data, and the weights are those that
    `weft train` then gives. Ctrl-C, or interrupting the kernel of a notebook, ends the training and keeps the
    best model so far; `weft.resume` continues.

    Args:
        task: name of a task, such as classify; or a recipe: a file, or the name of one that comes with Weft.
        train: a DataFrame; a list of texts, of tuples (text, class) or (source, target), or of sentences as
            lists of (word, tag); series as an array [T] or [T, N]; or the path of a file.
        valid: validation data of the same form; by default some of the training data is held out.
        test: test data of the same form, for `model.evaluate()`.
        run: the run directory; by default a new one, runs/TASK. One that was begun with the same data and
            settings is resumed.
        plugins: packages whose parts the recipe may name.
        progress: show a bar, or lines; False shows nothing.
        settings: options of `weft init TASK`, such as horizon=24 or text=["subject", "body"], and sections of
            the recipe with settings to change, such as training={"max_minutes": 5}.

    Raises:
        ConfigError: settings that the task does not have or that do not fit together.
        DataError: data that cannot be read or is too small.
        CheckpointError: the training was stopped before its first validation.

    Example:
        model = weft.fit("classify", frame, text="text", label="queue")
        model = weft.fit("translate", pairs, source="en", target="hr", run="runs/en-hr")
        model = weft.fit("recipe.yaml", training={"max_minutes": 5})

        >>> fit("classify", [("It works.", "praise")], labell="topic")
        Traceback (most recent call last):
        weft.errors.ConfigError: labell: classify has no such setting; did you mean label?
    """
    sections = {name: one for name, one in settings.items() if isinstance(one, Mapping)}
    options = {name: one for name, one in settings.items() if name not in sections}
    given = {
        name: one for name, one in {"train": train, "valid": valid, "test": test}.items() if one is not None
    }
    init = _init(task, plugins)
    name = task if init else find_recipe(task).path.stem
    path = _free(Path("runs", str(name))) if run is None else Path(run)
    changes = [*_overrides(sections)]
    if init:
        recipe = _new_recipe(init, path, given, options, changes, print if progress else None)
    elif more := [*given, *options]:
        raise ConfigError(f"{more[0]}: the recipe {task} says this already; change it by data={{...}}")
    else:
        recipe = read_recipe(Path(task), changes)
    return _trained(path, recipe, plugins, progress)


def resume(
    run: str | Path, *, plugins: Collection[str] = (), progress: bool = True, **sections: Mapping[str, Any]
) -> Predictor[Any]:
    """Continue a training that was stopped, from its last checkpoint, and open the model.

    Args:
        run: the run directory.
        plugins: packages whose parts the recipe may name.
        progress: show a bar, or lines; False shows nothing.
        sections: settings of the recipe to change, such as training={"max_epochs": 40}.

    Raises:
        ConfigError: a setting that may not change.
        CheckpointError: not a run directory.

    Example:
        model = weft.resume("runs/en-hr", training={"max_epochs": 40})

        >>> resume("runs/none")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.CheckpointError: runs/none: expected a run directory, ...
    """
    recipe = Path(run, "recipe.yaml")
    if not recipe.is_file():
        raise CheckpointError(
            f"{run}: expected a run directory, got no recipe.yaml in it; train with weft.fit"
        )
    return _trained(Path(run), read_recipe(recipe, [*_overrides(sections)]), plugins, progress)


def check(data: Any, task: str, *, plugins: Collection[str] = (), **options: Any) -> Report:
    """Report every mistake in data for a task, as `weft data check` does.

    Args:
        data: see `fit`.
        task: name of the task.
        plugins: packages that have the task.
        options: those of `weft data check`, such as text="subject" or label="queue".

    Example:
        >>> check([("It works.", "praise"), ("It is slow.", "complaint")], "classify").verdict
        'not ready: fix the errors first (1); training would fail on them'
    """
    kind: Any = named_part("task", task, Task, plugins)
    said = {name: one for name, one in options.items() if one is not None}
    if unknown := said.keys() - {*kind.check_options}:
        raise ConfigError(f"{min(unknown)}: the check of {task} has no such option; leave it out")
    with TemporaryDirectory() as folder:
        init = _init(task, plugins)
        file = _kept(data, Path(folder), "data", _columns(init, options) if init else ())
        report: Report = kind.check([file], **_lists(said, init)).with_too_few(kind.least)
    return report.without(f"{folder}{os.sep}")


def _free(path: Path) -> Path:
    while path.exists():
        path = numbered(path)
    return path


def _init(task: str | Path, plugins: Collection[str]) -> Init | None:
    """What `weft init` offers for a task; None if this is no name of one."""
    if task in rooms.folders(weft.tasks, Init):
        return rooms.find(weft.tasks, Init, str(task))()  # type: ignore[no-any-return]
    if not plugins or "." not in str(task) or Path(task).exists():
        return None
    kind: Any = named_part("fit", str(task), Task, plugins)
    return kind.init(task)  # type: ignore[no-any-return]


def _new_recipe(
    init: Init,
    run: Path,
    data: Mapping[str, Any],
    options: Mapping[str, Any],
    changes: Sequence[str],
    say: Callable[[str], None] | None,
) -> Table:
    """The recipe that `weft init` writes for data that is kept in RUN/data."""
    known = {one.name.replace("-", "_"): one for one in init.options}
    for name in [*data, *options]:
        if name not in known:
            near = close_name(name, known)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
            raise ConfigError(f"{name}: {init.task} has no such setting; {hint}")
    given: dict[str, Any] = {name: () if one.multiple else one.default for name, one in known.items()}
    given |= _lists(options, init)
    if "zone" in known and given["zone"] is None:
        given["zone"] = zone_of(data.get("train"))
    columns = _columns(init, given)
    given |= {name: _kept(one, run / DATA, name, columns) for name, one in data.items()}
    for name, value in options.items():
        if (allowed := known[name].choices) and value is not None and value not in allowed:
            raise ConfigError(f"{name}: expected one of {', '.join(map(str, allowed))}, got {value!r}")
    _written(run / DATA / "options.json", json.dumps(options, default=str, sort_keys=True).encode())
    missing = next((one.name for one in init.options if one.required and given[one.name] is None), "")
    if missing or (init.files and given["train"] is None):
        raise ConfigError(f"{missing or 'train'}: {init.task} needs it, got none")
    file = run / DATA / f"{init.folder}.yaml"
    if (run / "recipe.yaml").is_file():  # a resumed run keeps its recipe
        return read_recipe(file, changes)
    with TemporaryDirectory() as folder:
        screen = usual_screen if say else Reporter
        made = new_recipe(init, given, Path(folder), say=say or (lambda text: None), screen=screen)
        recipe = read_recipe(_written(file, made.recipe.encode()), changes)
        if made.run and take_over(made.run, run, recipe, plugins=init.plugin()[1:]) and say:
            say("the model of the trial is that of the recipe, so it is not trained again")
    return recipe


def _columns(init: Init, given: Mapping[str, Any]) -> list[str]:
    """Names for the cells of a tuple: those that were given, or those of the options."""
    named = [given.get(name) or name for name in init.cells]
    return [one if isinstance(one, str) else one[0] for one in named]


def _lists(given: Mapping[str, Any], init: Init | None) -> dict[str, Any]:
    """Options with a tuple where one may be repeated, and a path where one names a file."""
    known = {one.name.replace("-", "_"): one for one in init.options} if init else {}
    found = dict(given)
    for name, value in given.items():
        option = known.get(name)
        if option and option.multiple and isinstance(value, str):
            found[name] = (value,)
        elif option and option.multiple:
            found[name] = tuple(value)
        elif option and option.type is Path and value is not None:
            found[name] = Path(value)
    return found


def _kept(data: Any, folder: Path, name: str, columns: Collection[str]) -> Path:
    """A file with the data: the user's own, or one in the folder."""
    if isinstance(data, str | Path):
        return Path(data)
    return _written(*as_file(data, folder / name, [*columns]))


def _written(path: Path, content: bytes) -> Path:
    """The file with this content; a run keeps the data that it was begun with."""
    begun = (path.parent.parent / "recipe.yaml").is_file()
    if begun and path.is_file() and path.read_bytes() != content:
        raise DataError(
            "the run was begun with other data or options; name another run, or continue with weft.resume",
            path=str(path),
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, content)
    return path


def _overrides(sections: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Settings as the words of `weft train`: {"training": {"seed": 2}} is training.seed=2."""
    for name, value in sections.items():
        if isinstance(value, Mapping) and value:
            yield from _overrides(value, f"{above}{name}.")
        else:
            yield f"{above}{name}={json.dumps(value, default=str)}"


def _trained(run: Path, recipe: Table, plugins: Collection[str], progress: bool) -> Predictor[Any]:
    """The model of a run after its training, or after as much of it as there was time for."""

    def report(checked: CheckedRecipe) -> Reporter:
        if checked.note and progress:
            print(checked.note)
        screen = usual_screen() if progress else Reporter()
        return open_report(run, checked.settings.trackers, checked.plain, screen)

    _, outcome = train_run(run, recipe, report, plugins=plugins)
    if outcome.exit_code and not (run / "model.safetensors").is_file():
        raise CheckpointError(
            f"{run}: stopped before a first validation; weft.resume({str(run)!r}) continues"
        )
    if outcome.exit_code:
        text = f"{run}: stopped early; this is the best model so far, and weft.resume({str(run)!r}) continues"
        warnings.warn(text, DataWarning, stacklevel=3)
    return load(run, plugins=plugins)
