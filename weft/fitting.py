"""Train, resume, check and open models from Python: `weft.fit` and its neighbours.

    model = weft.fit("classify", frame, text="text", label="queue")

does what `weft init classify` and `weft train` do, with the same recipe, checks and weights; the data is kept
in RUN/data. Read next: tasks/init.py, the options of each task; run/training.py, a run before its training.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Integral, Number
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import weft.tasks
from weft import rooms
from weft.config import Table, read_recipe
from weft.config.plugins import named_part
from weft.config.recipe import find_recipe
from weft.data.frames import GivenData, as_file, given_as_file, in_python, is_frame, located, named, zone_of
from weft.data.report import Report
from weft.errors import CheckpointError, ConfigError, DataError, caution, given_path
from weft.run.loading import load
from weft.run.train import train_run
from weft.run.training import DATA, CheckedRecipe
from weft.store import files
from weft.tasks.init import FILES, Init
from weft.tasks.predictor import Predictor
from weft.tasks.task import Task
from weft.train.reporting import Reporter
from weft.train.trackers import open_report, usual_screen
from weft.tune.candidates import take_over
from weft.tune.recipes import new_recipe
from weft.wording import close_name, kind_of, numbered

SECTIONS = "data", "model", "training", "decoding"
SECTION = 'training={"max_epochs": 5}'


def fit(
    task: str | Path,
    train: Any = None,
    *rest: Any,
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
        train: a DataFrame; a list of texts, of tuples (text, class), (source, target) or (file, text), or of
            sentences as lists of (word, tag); series as an array [T] or [T, N]; or a path, or several.
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
    _check_none(rest)
    sections = {name: one for name, one in settings.items() if isinstance(one, Mapping)}
    options = {name: one for name, one in settings.items() if name not in sections}
    given = {name: one for name, one in zip(FILES, (train, valid, test), strict=True) if one is not None}
    init = _init(task, plugins)
    name = task if init else find_recipe(task).path.stem
    path = _free(Path("runs", str(name))) if run is None else given_path("run", run)
    changes, held = [*_overrides(sections)], list[GivenData]()
    with named(held):
        if init:
            recipe = _new_recipe(init, path, given, options, changes, held, progress)
        elif more := [*given, *options]:
            raise ConfigError(f"{more[0]}: the recipe {task} says this already; change it by data={{...}}")
        else:
            recipe = read_recipe(Path(task), changes)
        return _trained(path, recipe, plugins, progress)


def _check_none(rest: Sequence[Any]) -> None:
    """Inputs and answers are not two arguments, as they are for scikit-learn."""
    if rest:
        both = "give inputs and answers together: a table, or list(zip(X, y)); weft.sklearn has fit(X, y)"
        raise ConfigError(f"expected a task and its training data, got {1 + len(rest)} kinds of data; {both}")


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
    recipe = given_path("resume", run) / "recipe.yaml"
    if not recipe.is_file():
        raise CheckpointError(
            f"{run}: expected a run directory, got no recipe.yaml in it; train with weft.fit"
        )
    with named():
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
    init = _init(task, plugins)
    kind: Any = named_part("task", task, Task, plugins)
    said = {name: one for name, one in options.items() if one is not None}
    if unknown := said.keys() - {*kind.check_options}:
        raise ConfigError(f"{min(unknown)}: the check of {task} has no such option; leave it out")
    if several := _several(data):
        with named():
            return kind.check(several, **_lists(said, init)).with_too_few(kind.least).told(in_python)  # type: ignore[no-any-return]
    with TemporaryDirectory() as folder:
        columns = _columns(init, options) if init else ()
        data = _examples(init, "data", data) if init else data
        with given_as_file(data, Path(folder), "data", columns) as file:
            if file is None:
                raise ConfigError("data: expected a table, a list or a file, got nothing")
            report: Report = kind.check([file], **_lists(said, init)).with_too_few(kind.least)
            given = [] if isinstance(data, str | Path) else [GivenData("data", data, file)]
            return report.told(lambda text: in_python(text, given))


def _free(path: Path) -> Path:
    while path.exists():
        path = numbered(path)
    return path


def _init(task: str | Path, plugins: Collection[str]) -> Init | None:
    """What `weft init` offers for a task; None if this is no name of one."""
    if not isinstance(task, str | Path):
        first = 'the task comes first: weft.fit("classify", data), and in weft.check(data, "classify") last'
        raise ConfigError(f"expected the name of a task or a recipe, got {kind_of(task)}; {first}")
    if task in (known := rooms.folders(weft.tasks, Init)):
        with named():
            return rooms.find(weft.tasks, Init, str(task))()  # type: ignore[no-any-return]
    if str(task).isidentifier() and not Path(task).exists():
        near = close_name(str(task), known)
        hint = f"did you mean {near}?" if near else f"the tasks are {', '.join(sorted(known))}"
        try:
            find_recipe(str(task))
        except ConfigError:
            raise ConfigError(f"{task}: no such task and no such recipe; {hint}") from None
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
    held: list[GivenData],
    progress: bool,
) -> Table:
    """The recipe that `weft init` writes for data that is kept in RUN/data."""
    known = {one.name.replace("-", "_"): one for one in init.options}
    for name in [*data, *options]:
        if name in SECTIONS and name not in known:
            raise ConfigError(f"{name}: expected settings, such as {SECTION}, got {kind_of(options[name])}")
        if name not in known:
            near = close_name(name, known)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}, and {SECTION}"
            raise ConfigError(f"{name}: {init.task} has no such setting; {hint}")
    given: dict[str, Any] = {name: () if one.multiple else one.default for name, one in known.items()}
    given |= _lists(options, init)
    if "zone" in known:
        given["zone"] = given["zone"] or zone_of(data.get("train"))
    data = {name: _examples(init, name, one) for name, one in data.items()}
    columns = _columns(init, given)
    for name, one in data.items():
        if isinstance(one, str | Path):
            given[name] = Path(one)
        elif several := _several(one):
            given[name] = several
        else:
            given[name] = _written(*as_file(one, run / DATA / name, columns))
            held.append(GivenData(name, one, given[name]))
    if isinstance(given.get("train"), list) and not init.several:
        raise ConfigError(f"train: {init.task} takes one file, got {len(given['train'])}; join them")
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

    def say(text: str) -> None:
        if progress:
            print(in_python(text, held))

    with TemporaryDirectory() as folder:
        screen = usual_screen if progress else Reporter
        made = new_recipe(init, given, Path(folder), say=say, screen=screen)
        recipe = read_recipe(_written(file, made.recipe.encode()), changes)
        if made.run and take_over(made.run, run, recipe, plugins=init.plugin()[1:]):
            say("the model of the trial is that of the recipe, so it is not trained again")
    return recipe


def _examples(init: Init, name: str, data: Any) -> Any:
    """Data of Python as the task reads it: lists of sentences or texts; files as paths that are found."""
    if init.reads == "sentences":
        data = data.tolist() if getattr(data, "ndim", 2) == 1 and hasattr(data, "tolist") else data
        if is_frame(data):
            how = "[[*zip(own.word, own.tag)] for _, own in df.groupby('sentence')]"
            raise DataError(f"{name}: expected sentences as lists of (word, tag), got a table; give {how}")
        return data
    tuples = (one for one in data if isinstance(one, tuple | list)) if isinstance(data, list) else ()
    if init.lists_files:
        data = located(data)
    elif not init.cells and any(not isinstance(cell, Number | None) for one in tuples for cell in one):
        wanted = "texts, got" if init.reads == "texts" else "a table, got"
        how = "one text each" if init.reads == "texts" else "pd.DataFrame(rows, columns=[...])"
        raise DataError(f"{name}: expected {wanted} a list of tuples; give {how}")
    if not is_frame(data) or init.reads == "table":
        return data
    if getattr(data, "ndim", 2) == 2:
        if len(data.columns) != 1:
            shown = ", ".join(map(str, data.columns))[:200]
            raise DataError(
                f"{name}: expected one column of texts, got {shown}; give one, such as df['text']"
            )
        data = data[data.columns[0]]
    return [*data]


def _columns(init: Init, given: Mapping[str, Any]) -> list[str]:
    """Names for the cells of a tuple: those that were given, or those of the options."""
    named = [given.get(name) or name for name in init.cells]
    return [one if isinstance(one, str) else one[0] for one in named]


def _lists(given: Mapping[str, Any], init: Init | None) -> dict[str, Any]:
    """Options of their types: a tuple where one may be repeated, and a path where one names a file."""
    known = {one.name.replace("-", "_"): one for one in init.options} if init else {}
    found = dict(given)
    for name, value in given.items():
        option = known.get(name)
        if option and option.multiple:
            several = value if isinstance(value, list | tuple) else [value]
            found[name] = tuple(_typed(name, one, option.type) for one in several)
        elif option and value is not None:
            found[name] = _typed(name, value, option.type)
    return found


def _typed(name: str, value: Any, kind: type) -> Any:
    """The value of an option; a number may name a column."""
    if kind is Path:
        return given_path(name, value)
    truth = isinstance(value, bool)
    if kind is bool and truth:
        return value
    if kind is int and isinstance(value, Integral) and not truth:
        return int(value)
    if kind is str and isinstance(value, str | Integral) and not truth:
        return str(value)
    words = {bool: "True or False", int: "a whole number", str: "a text"}
    shown = f" ({str(value)[:40]})" if isinstance(value, str | Number) else ""
    raise ConfigError(f"{name}: expected {words[kind]}, got {kind_of(value)}{shown}")


def _several(data: Any) -> list[Path]:
    """The files of a list, if one is there or is a Path; none of a list of texts, or of other data."""
    if not isinstance(data, list) or not all(isinstance(one, str | Path) for one in data):
        return []
    there = (isinstance(one, Path) or (Path(one).suffix and os.path.isfile(one)) for one in data)
    return [*map(Path, data)] if any(there) else []


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
        caution(
            f"{run}: stopped early; this is the best model so far, and weft.resume({str(run)!r}) continues"
        )
    return load(run, plugins=plugins)
