"""weft check: is this answer to an exercise of the course right?"""

import json
import traceback
from pathlib import Path
from typing import Any

import click

from weft.errors import DataError
from weft.testing.translations import LANGUAGES, translated, two_letters
from weft.wording import columns, folded

CODE = "<answer>"


class CourseLanguage(click.Choice[str]):
    """A language of the course, also written as a locale: HR, hr_HR.UTF-8."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its two letters."""
        return super().convert(two_letters(value), param, ctx)


@click.command()
@click.argument("exercise", required=False)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--language",
    envvar="COURSE_LANGUAGE",
    default="en",
    show_default=True,
    type=CourseLanguage(LANGUAGES),
    help="Language of the hints; or set COURSE_LANGUAGE (LANG is not read).",
)
def command(exercise: str | None, file: Path | None, language: str) -> None:
    """Check an answer to an exercise of the course.

    FILE is a Python file or a notebook that defines the names that the exercise asks for; it is run. Without
    FILE, print these names. Without EXERCISE, list the exercises.

    \b
    Examples:
      weft check
      weft check lstm-parameters
      weft check lstm-parameters answer.py
      weft check bptt-relu bptt.ipynb
      weft check lstm-parameters answer.py --language hr
    """  # noqa: D301  click reads the \b
    from weft.testing.exercises import EXERCISES, check_exercise, exercise_of

    if exercise is None:
        width = max(map(len, EXERCISES))
        for name, one in EXERCISES.items():
            lines = folded(translated(one.asks, language), max(30, columns() - width - 2), indent=0).split(
                "\n"
            )
            click.echo("\n".join(f"{name if not n else '':<{width}}  {line}" for n, line in enumerate(lines)))
        return
    asked = exercise_of(exercise, language)
    if file is None:
        click.echo(translated(f"Define {asked.asks}", language))
        return
    try:
        names = _run(_code(file, exercise), file)
    except DataError as mistake:
        raise DataError(translated(str(mistake), language)) from None
    try:
        check_exercise(exercise, names, language=language)
    except AssertionError as wrong:
        raise DataError(f"{file}: {exercise}: {wrong}") from None


def _code(file: Path, exercise: str) -> str:
    """The Python code of a file; of a notebook, only the exercise's own cell if one is marked."""
    try:
        text = file.read_text("utf-8")
        if file.suffix != ".ipynb":
            return text
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        marked = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise]
        return "\n\n".join(_python("".join(cell["source"])) for cell in marked or cells)
    except OSError as mistake:
        raise DataError(f"{file}: cannot be read: {mistake.strerror}; give a .py or .ipynb file") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{file}: expected a Python file or a notebook in UTF-8; save it again as one"
        ) from None


def _python(cell: str) -> str:
    """A cell without what only IPython understands, and without checks."""
    lines = cell.split("\n")
    if lines[0].startswith("%%"):
        return ""
    return "\n".join(line for line in lines if not line.startswith(("%", "!", "check_exercise(")))


def _run(code: str, file: Path) -> dict[str, Any]:
    """The names that the code defines."""
    names: dict[str, Any] = {"__name__": "__answer__"}
    try:
        exec(compile(code, CODE, "exec"), names)  # the student's own file, as python FILE would run it
    except SyntaxError as mistake:
        where = f"{file}: line {mistake.lineno}"
        raise DataError(f"{where}: {mistake.msg}; correct it and check again") from None
    except (Exception, SystemExit) as mistake:  # noqa: BLE001 - the student's code may raise anything
        lines = [
            frame.lineno for frame in traceback.extract_tb(mistake.__traceback__) if frame.filename == CODE
        ]
        where = f"{file}: line {lines[-1]}" if lines else str(file)
        what = f"{type(mistake).__name__}: {mistake}"
        raise DataError(f"{where}: {what}; correct it and check again") from None
    return names
