"""The command `weft`: finds the command that was asked for, loads only that one, and says in one
sentence what a user can mend.

Nothing heavy is imported here, so that `weft --help` answers at once.
Read next: commands/, one file for each command.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from weft import __version__, machine, parent
from weft.commands.lazy import Lazy
from weft.errors import WeftError
from weft.visible import shown

COMMANDS = {
    "demo": "Train a small translator in minutes, score it, use it, look into it.",
    "init": "Look at your files and write a commented recipe for them.",
    "recipes": "List the recipes that come with Weft, or print one.",
    "train": "Train what a recipe describes, or resume a run.",
    "evaluate": "Score a run on held-out data, beside trivial translators.",
    "predict": "Answer each line of a file or of standard input.",
    "export": "Write a run's word vectors for other programs.",
    "inspect": "Look inside a run: one page with every view.",
    "compare": "Several runs, or the variants of a recipe, side by side.",
    "import": "Turn a checkpoint of the transformers library into a run.",
    "serve": "Serve runs: a page to try them, and an HTTP interface.",
    "show": "Print a run: its recipe, sizes and scores.",
    "data": "Check data files: everything that is wrong, at once.",
    "ngram": "Count an n-gram model from text, score text with one (ARPA).",
    "doctor": "Say what this machine offers, and what is fast on it.",
}
"""Name and help of every command; commands/<name>.py holds it as `command`."""

NO_MEMORY = (
    "out of memory; make the model or the batches smaller, or check that the recipe and "
    "the files are what you think they are"
)


class Commands(Lazy):
    """A group that knows its commands' names and imports the one that is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def load(self, name: str) -> click.Command:
        """From the file of that name."""
        found: click.Command = importlib.import_module(f"weft.commands.{name}").command
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table above instead of from their files."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", message="weft %(version)s")
@click.pass_context
def group(context: click.Context) -> None:
    """Sequence models from the recurrent cell to the Transformer: train, score, use, look into them.

    Start with `weft demo`. Each command explains itself: weft train --help
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0, 2 for a user's mistake, 3 where `predict` could not answer some of its inputs, 130 for Ctrl-C, 1
    where the reader of the output has gone.

    Args:
        arguments: those of the process unless given.
    """
    # It must stand before torch starts its threads: those that spin slow a shared machine tenfold.
    machine.settle()
    parent.end_with_parent()
    with shown():
        code = _run(arguments)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    # WEFT_TRACEBACK=1 shows where a message was raised.
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
        # The reader (head, less) has gone; what is left of the output goes nowhere, quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        return _say(NO_MEMORY)
    except RuntimeError as trouble:
        if "can't allocate memory" not in str(trouble):  # torch has no class of its own for it on a CPU
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
