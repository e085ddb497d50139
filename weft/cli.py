"""The command `weft`: imports the one command that is called, and reports errors in one sentence.

Nothing heavy is imported here, so that `weft --help` is instant.
Read next: commands/, one file per command.
"""

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import click

from weft import machine
from weft.commands.options import Lazy, plugins_in
from weft.errors import DataWarning, WeftError, what_to_install
from weft.version import __version__
from weft.wording import shown

COMMANDS = {
    "demo": "Train, score and try a small translator in minutes.",
    "init": "Write a commented recipe for your own files.",
    "recipes": "List the recipes that come with Weft, or print one.",
    "train": "Train the model that a recipe describes, or resume a run.",
    "tune": "Search for better settings of a recipe, within a budget.",
    "folds": "Cross-validate a recipe: every fold tested once, one report.",
    "evaluate": "Score a run on held-out data, next to simple baselines.",
    "predict": "Answer every line of a file or of standard input.",
    "distill": "Train a small, fast model on what a large one writes.",
    "backtranslate": "Make training pairs from monolingual text.",
    "export": "Write a run for other programs: ONNX, a web page, transformers, word vectors.",
    "inspect": "See inside a model: attention, states and search on one page.",
    "compare": "Compare runs, or variants of a recipe, in one report.",
    "import": "Turn a checkpoint of transformers or a translation toolkit into a run.",
    "serve": "Serve runs over HTTP, with a web page to try them.",
    "show": "Print the sizes, scores and recipe of a run.",
    "data": "Check data files for mistakes before training.",
    "ngram": "Count an n-gram model, or score text with one (ARPA files).",
    "check": "Check an answer to an exercise of the course.",
    "doctor": "Report what this machine offers and how fast it is.",
}
"""Name and help of every command; commands/<name>.py defines it as `command`."""

NO_MEMORY = (
    "out of memory; make the model or the batches smaller, or check that the recipe and the files are the "
    "ones you meant"
)


class Commands(Lazy):
    """The group `weft`: lists all commands, imports only the one that is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order a newcomer needs them."""
        return list(COMMANDS)

    def load(self, name: str) -> click.Command:
        found: click.Command = importlib.import_module(f"weft.commands.{name}").command
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from `COMMANDS`, without importing their files."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, "-V", "--version", message="weft %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Train, score, use and inspect sequence models, from recurrent cells to Transformers.

    Start with: weft demo

    For the options of a command: weft train --help
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process.

    Exit codes: 0 for success, 1 if `data check` found errors or the reader of the output has closed it, 2 for
    a user's mistake, 3 if `predict` or `evaluate` could not answer some inputs, 130 for Ctrl-C and 143 for
    SIGTERM.
    """
    # Before torch starts its threads: spinning threads slow a shared machine tenfold.
    machine.settle()
    machine.end_with_parent()
    with shown(), _data_warnings():
        code = _run(arguments)
    machine.leave(code)


def _run(arguments: Sequence[str] | None) -> int:
    out = sys.stdout
    try:
        code = group.main(args=arguments, prog_name="weft", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.UsageError as mistake:
        if isinstance(mistake, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
            click.echo(mistake.format_message())
            return 0
        command = mistake.ctx.command_path if mistake.ctx else "weft"
        return _report(f"{mistake.format_message().rstrip('.')} (see {command} --help)")
    except click.ClickException as mistake:
        return _report(mistake.format_message())
    except WeftError as mistake:
        return _report(str(mistake))
    except (KeyboardInterrupt, click.Abort):
        _report("stopped")
        return 130
    except (BrokenPipeError, SystemExit) as closed:
        if isinstance(closed, SystemExit) and sys.stdout is out:
            raise  # not click's exit after a broken pipe, before which it replaces the output
        # The reader (head, less) has closed the pipe: discard the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as trouble:
        sentence = _sentence(trouble, plugins_in(sys.argv[1:] if arguments is None else arguments))
        if not sentence:
            raise
        return _report(sentence)


def _sentence(trouble: Exception, plugins: Sequence[str]) -> str:
    """A sentence about an error that Weft did not raise; "" if only a developer can correct it."""
    if isinstance(trouble, MemoryError):
        return NO_MEMORY
    if isinstance(trouble, RuntimeError) and "can't allocate memory" in str(trouble):
        return NO_MEMORY  # torch has no exception class for this on a CPU
    if type(trouble).__name__ == "OutOfMemoryError":  # torch's, of a GPU
        said = str(trouble).splitlines()[0][:90]
        return f"{NO_MEMORY}; the GPU says: {said}"
    if isinstance(trouble, OSError) and (trouble.filename is not None or trouble.strerror is not None):
        place = f"{trouble.filename}: " if trouble.filename is not None else ""
        return f"{place}{trouble.strerror}"
    if isinstance(trouble, ModuleNotFoundError) and (wanted := what_to_install(trouble)):
        return wanted
    if not plugins:
        return ""
    from weft.config.plugins import explained_failure

    return explained_failure(trouble, plugins)


@contextmanager
def _data_warnings() -> Iterator[None]:
    """Print each warning about data once, as one line."""
    said: set[str] = set()
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, DataWarning):
            usual(message, category, filename, lineno, file, line)
        elif (text := str(message)) not in said:
            said.add(text)
            print(f"weft: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield


def _report(sentence: str) -> int:
    # WEFT_TRACEBACK=1 shows where the error was raised.
    if os.environ.get("WEFT_TRACEBACK", "0") not in {"", "0"}:
        traceback.print_exc()
    print(f"weft: {sentence}", file=sys.stderr)
    return 2
