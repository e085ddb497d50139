"""The command line `weft`: loads only the chosen command and reports user errors in one line.

Nothing heavy is imported here, so `weft --help` responds at once.
Read next: commands/, one file per command.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from weft import machine, parent
from weft.commands.lazy import Lazy
from weft.errors import WeftError
from weft.version import __version__
from weft.visible import shown

COMMANDS = {
    "demo": "Train a small translator in minutes, score it, use it and inspect it.",
    "init": "Inspect your files and write a commented recipe for them.",
    "recipes": "List the recipes included in Weft, or print one.",
    "train": "Train the model of a recipe, or resume a run.",
    "evaluate": "Score a run on held-out data and compare it with trivial baselines.",
    "predict": "Answer each line of a file or of standard input.",
    "export": "Write a run's word vectors for other programs.",
    "inspect": "Inspect a run on one page with all views.",
    "compare": "Compare runs, or variants of a recipe.",
    "import": "Turn a checkpoint of the transformers library into a run.",
    "serve": "Serve runs as a web page and an HTTP API.",
    "show": "Print the recipe, sizes and scores of a run.",
    "data": "Check data files and report all problems at once.",
    "ngram": "Estimate an n-gram model from text, or score text with one (ARPA).",
    "doctor": "Show what this machine supports and which kernels are fast on it.",
}
"""Name and help of each command; commands/<name>.py defines it as `command`."""

NO_MEMORY = (
    "out of memory; make the model or the batches smaller, or check that the recipe and "
    "the files are what you think they are"
)


class Commands(Lazy):
    """A group that imports only the command that is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names in the order in which new users need them."""
        return list(COMMANDS)

    def load(self, name: str) -> click.Command:
        """Import a command from the file of that name."""
        found: click.Command = importlib.import_module(f"weft.commands.{name}").command
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the table above, without importing their files."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", message="weft %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Sequence models from recurrent cells to Transformers: train, evaluate, use and inspect them.

    Start with `weft demo`. Each command has its own help: weft train --help
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Codes: 0 for success, 1 if the reader of the output has closed it, 2 for a user error, 3 if `predict`
    could not answer some inputs, 130 for Ctrl-C.

    Args:
        arguments: those of the process by default.
    """
    # This must come before torch starts its threads: spinning threads slow a shared machine tenfold.
    machine.settle()
    parent.end_with_parent()
    with shown():
        code = _run(arguments)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    # WEFT_TRACEBACK=1 shows the traceback of an error.
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
        return _say(f"{mistake.format_message().rstrip('.')} (see {command} --help)")
    except click.ClickException as mistake:
        return _say(mistake.format_message())
    except WeftError as mistake:
        return _say(str(mistake))
    except (KeyboardInterrupt, click.Abort):
        _say("stopped")
        return 130
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe; discard the remaining output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        return _say(NO_MEMORY)
    except RuntimeError as trouble:
        if "can't allocate memory" not in str(trouble):  # torch has no exception class for this on a CPU
            raise
        return _say(NO_MEMORY)
    except OSError as trouble:
        if trouble.filename is None and trouble.strerror is None:
            raise
        place = f"{trouble.filename}: " if trouble.filename is not None else ""
        return _say(f"{place}{trouble.strerror}")


def _say(sentence: str) -> int:
    if os.environ.get("WEFT_TRACEBACK", "0") not in {"", "0"}:
        traceback.print_exc()
    print(f"weft: {sentence}", file=sys.stderr)
    return 2
