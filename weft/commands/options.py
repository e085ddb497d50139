"""What commands share: lazy groups, options, help with headings, the settings that options ask for."""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import click

from weft.errors import ConfigError
from weft.machine import LAUNCHED
from weft.search.offered import Decoding, options
from weft.wording import close_name

OTHER = "Other options"

OFFERED = options(Decoding)
"""The settings of a search that are options; those that are hidden work too, as they do with --set."""

SEARCH = (*(name for name, one in OFFERED.items() if one.search != "sample"), "ensemble", "changes")
"""Names of the options about how an answer is searched, for `headings`."""

SAMPLING = ("sample", *(name for name, one in OFFERED.items() if one.search == "sample"))
"""Names of the options about random answers, for `headings`."""


class RecipeFile(click.Path):
    """A recipe as a parameter: a file or a name; for a name of an earlier version, say what to type now."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """As for every path; a name that nothing has is reported where the recipe is read."""
        from weft.config.recipe import find_recipe

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if LAUNCHED not in os.environ:  # the launcher has said so
            with suppress(ConfigError):
                if note := find_recipe(path).note:
                    click.echo(note, err=True)
        return path


def file_option(*names: str, **about: Any) -> Callable[..., Any]:
    """An option that names a file to read."""
    return click.option(*names, **{"metavar": "FILE", "type": click.Path(path_type=Path), **about})


def count_option(*names: str, least: int = 1, **about: Any) -> Callable[..., Any]:
    """An option that is a whole number."""
    return click.option(*names, **{"metavar": "N", "type": click.IntRange(least), **about})


device = click.option(
    "--device", metavar="NAME", default="auto", help="Device to compute on: cpu, cuda or auto."
)
plugin = click.option(
    "--plugin",
    "plugins",
    metavar="PACKAGE",
    multiple=True,
    help="Python package of yours with parts of the recipe.",
)


def plugins_in(arguments: Sequence[str]) -> list[str]:
    """The values of --plugin in arguments that are not parsed yet, or no longer at hand."""
    after = [value for option, value in pairwise(arguments) if option == "--plugin"]
    return after + [word.removeprefix("--plugin=") for word in arguments if word.startswith("--plugin=")]


def plugin_words(plugins: Sequence[str]) -> list[str]:
    """The words that name these packages, for another command."""
    return [word for one in plugins for word in ("--plugin", one)]


setting = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of decoding; weft show RUN lists them.",
)
processes = count_option("--processes", help="Number of processes in which the model writes.")
ensemble = file_option(
    "--ensemble",
    multiple=True,
    metavar="RUN2",
    help="Another run to average with, or RUN/cycles (repeatable).",
)
sample = click.option("--sample", is_flag=True, help="Draw random answers instead of the best one.")


def _offered(name: str) -> Callable[..., Any]:
    """The option of a setting of the search."""
    one = OFFERED[name]
    kind = get_args(one.kind)[0] if get_origin(one.kind) in (Annotated, tuple, UnionType) else one.kind
    return click.option(
        f"--{name.replace('_', '-')}",
        type=click.Path(path_type=Path) if kind is Path else kind,
        is_flag=kind is bool,
        default=None,
        multiple=isinstance(one.default, tuple),
        metavar=one.metavar,
        hidden=one.option == "hidden",
        help=one.help,
    )


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings."""

    def __init__(self, *args: Any, headings: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.headings = headings

    def invoke(self, ctx: click.Context) -> Any:
        """As for every command; an error about a setting of the search names the option that was typed."""
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            settings, _, why = str(error).partition(": ")
            names = settings.split(" and ")
            if not all(name in OFFERED and given_one(ctx.params.get(name)) for name in names):
                raise
            typed = " and ".join(f"--{name.replace('_', '-')}" for name in names)
            raise ConfigError(f"{typed}: {why}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options under their headings."""
        params = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        grouped = {name for names in self.headings.values() for name in names}
        rest = [name for name in params if name not in grouped]
        for heading, names in [*self.headings.items(), (OTHER, rest)]:
            records = [params[name].get_help_record(ctx) for name in names if name in params]
            if shown := [record for record in records if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(shown)


class ListingCommand(click.Command):
    """A command whose help ends with a list, which `listed` makes only when the help is shown."""

    def __init__(
        self, *args: Any, heading: str, listed: Callable[[], Sequence[tuple[str, str]]], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.heading, self.listed = heading, listed

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list under its heading."""
        with formatter.section(self.heading):
            formatter.write_dl(self.listed())


def searching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a search; `nbest` is only of those who want several answers."""
    own = [_offered(name) for name, one in OFFERED.items() if one.search != "sample" and name != "nbest"]
    return _with([*own, ensemble, setting], command)


def sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of random answers, those named by `SAMPLING`."""
    return _with([sample, *map(_offered, SAMPLING[1:])], command)


nbest = _offered("nbest")


def given_one(value: Any) -> bool:
    """Whether the user gave an option: click stores None, False or () for one that was not given."""
    return value is not None and value is not False and value != ()


def as_words(command: click.Command, given: Mapping[str, Any]) -> list[str]:
    """Options as one types them, for another call of a command; those that were not given are left out."""
    words: list[str] = []
    for option in command.params:
        value: Any = given.get(option.name or "")
        if not isinstance(option, click.Option) or not given_one(value):
            continue
        name = option.opts[0]
        values: Any = value if option.multiple else [value]
        words += [name] if option.is_flag else [word for one in values for word in (name, str(one))]
    return words


def _with(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


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


EARLIER = {
    "backtranslate": {"--output": "--folder"},
    "compare": {"--output": "--folder"},
    "folds": {"--output": "--folder"},
    "predict": {"--plot": "--pictures", "--plot-limit": "--max-pictures"},
}
"""Options of commands by their earlier names, which are still read."""


class Lazy(click.Group):
    """Base of the groups `weft` and `weft init`."""

    @abstractmethod
    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""

    @abstractmethod
    def load(self, name: str) -> click.Command:
        """Import a command by a name from `list_commands`."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name, or None."""
        return once(self.load(name), EARLIER.get(name, {})) if name in self.list_commands(context) else None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but an unknown name gets a suggestion."""
        name, names = arguments[0], self.list_commands(context)
        if name not in names and not name.startswith("-"):
            near = close_name(name, names)
            hint = f"did you mean {near!r}?" if near else "choose one of " + ", ".join(names)
            context.fail(f"unknown command {name!r}; {hint}")
        return super().resolve_command(context, arguments)


def once(command: click.Command, earlier: Mapping[str, str]) -> click.Command:
    """The same command, which refuses an option of one value that is given twice; click takes the last one.

    `earlier` has options of today by names that they had, which are read as well.
    """
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        once(inner, {})
    if "make_parser" not in vars(command):
        vars(command)["make_parser"] = _checking(command.make_parser, earlier)
    return command


def _wanted(context: click.Context, mistake: click.NoSuchOption | click.BadOptionUsage) -> str:
    """What to write instead of an option that the command has not, or that lacks its value."""
    known = {name: one for one in context.command.params for name in one.opts}
    if option := known.get(mistake.option_name):
        return f", {option.make_metavar(context)}"
    changes = mistake.option_name == "--set" and "overrides" in known
    return "; write SECTION.KEY=VALUE without it" if changes else ""


def _checking(
    make: Callable[[click.Context], Any], earlier: Mapping[str, str]
) -> Callable[[click.Context], Any]:
    def today(word: str) -> str:
        name, sign, value = word.partition("=")
        if name not in earlier:
            return word
        click.echo(f"{name} is now {earlier[name]}", err=True)
        return earlier[name] + sign + value

    def make_parser(context: click.Context) -> Any:
        parser = make(context)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            try:
                found = parse([today(word) for word in args])
            except (click.NoSuchOption, click.BadOptionUsage) as mistake:
                name = mistake.option_name
                if begun := [new for old, new in earlier.items() if old.startswith(name)]:
                    context.fail(f"No such option {name!r}. Did you mean {begun[0]!r}?")
                context.fail(f"{mistake.format_message().rstrip('.')}{_wanted(context, mistake)}")
            given = found[2]  # every parameter, as often as it was given
            for one in given:
                single = isinstance(one, click.Option) and not (one.multiple or one.count or one.is_flag)
                if single and (times := given.count(one)) > 1:
                    context.fail(f"{one.opts[0]}: expected one value, got {times}; leave the others out")
            return found

        parser.parse_args = parse_args
        return parser

    return make_parser
