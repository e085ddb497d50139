"""The contracts of prediction: a Predictor reads and answers inputs; an Answer has text, JSON and figures.

`weft predict`, the server, the inspector and `weft.load` use only these contracts of a task.
Read next: tag/predictor.py, a short one.
"""

import copy
import html
import importlib
import json
import os
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
)

import torch

from weft.data.frames import GivenData, given_as_file, in_python, located
from weft.data.held import name_of, table_as_file
from weft.data.labelled import NO_BORDER, joined_columns
from weft.errors import ConfigError, DataError, ShapeError, caution, library
from weft.figures.records import Figure
from weft.tasks.answer_list import AnswerList, missing, rows_of
from weft.text.characters import named
from weft.wording import kind_of, plural

if TYPE_CHECKING:
    import pandas as pd

    from weft.tasks.evaluation import Evaluation


Failure = DataError | ShapeError
"""Errors caused by one input: its content or its length. Errors of settings end the whole command."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Raw = Any
"""An input as a user gives it: a text, the bytes of a file, numbers, or what else a task says."""

Reads = Literal["text", "numbers", "picture", "sound"]
In = TypeVar("In")
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A", bound="Answer")

WINDOW = 1024
"""Number of inputs of a file that are answered together."""


UNSAVED = (
    *("checkpoints", "checkpoints.json", "data", "data.json", "refit", "tensorboard", "mlflow", "wandb"),
    *("trackio", "trackers.json"),
)
"""What of a run only its training needs."""

_PICTURE = re.compile(r"\S+\.(png|svg|pdf)", re.IGNORECASE)

USED_IN_PYTHON = "predict", "predict_all", "evaluate", "labels", "recipe", "plot", "inspect", "save"
"""What users of Python need of every Predictor."""


class Place(NamedTuple):
    """The place of an input, such as in.txt:3."""

    name: str  # of the file, or of the source
    line: int = 0  # from 1; 0 if the source has no lines

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name

    def why(self, error: Failure) -> str:
        """The message of an error, after this place unless the error has its own."""
        known = isinstance(error, DataError) and error.path == self.name and error.line == (self.line or None)
        return str(error) if known else f"{self}: {error}"

    def refuse(self, why: str) -> DataError:
        """An error about the input at this place."""
        return DataError(why, path=self.name, line=self.line or None)


class Answer(ABC):
    """The answer to one input; text, JSON and figures are computed on demand.

    Example:
        >>> class TextLength(Answer):
        ...     def __init__(self, size):
        ...         self.size = size
        ...     def text(self):
        ...         return f"{self.size} letters"
        ...     def json(self):
        ...         return self.size
        >>> TextLength(5).text()
        '5 letters'
    """

    wrong: str = ""
    """Why there is no answer, with the place of the input; empty if there is one."""

    lost: str = ""
    """What the answer lacks of its input, such as a placeholder; empty if nothing."""

    @abstractmethod
    def text(self) -> str:
        """What `weft predict` writes: one or more lines, without a final line end."""

    @abstractmethod
    def json(self) -> Json:
        """The server's response."""

    def figure(self) -> "Figure | None":
        """The figure of `weft predict --pictures`, or None if there is nothing to draw."""
        return None

    def pictures(self) -> Mapping[str, bytes]:
        """The files of `weft predict --pictures`, by extension: the figure as PNG and SVG."""
        from weft.figures.picture import png, svg

        figure = self.figure()
        return {} if figure is None else {".png": png(figure), ".svg": svg(figure).encode()}

    def figure_name(self) -> str:
        """The name of the figure's file without its extension; "" uses the number of the answer."""
        return ""

    def alignment(self) -> str:
        """The source word aligned with each word of the answer, as Pharaoh pairs: 0-0 1-2."""
        return ""


class PlainAnswer(Answer):
    """A text or a number that says everything; `form` is that of its text, such as ".2f".

    Example:
        >>> answer = PlainAnswer(7.125, ".1f")
        >>> answer.text(), answer.json()
        ('7.1', 7.125)
    """

    def __init__(self, value: str | int | float, form: str = "") -> None:
        self._value, self._form = value, form

    def text(self) -> str:
        return format(self._value, self._form)

    def json(self) -> Json:
        return self._value


class NoAnswer(Answer):
    """Empty lines, or a text, instead of an answer, and why: with the place of the input."""

    def __init__(self, wrong: str, lines: int = 1, text: str = "") -> None:
        self.wrong = wrong
        self.lines = lines
        self._text = text or "\n" * (lines - 1)

    def text(self) -> str:
        return self._text

    def json(self) -> Json:
        return None


class ParsedInput(NamedTuple, Generic[In]):
    """An input of a source: its value, or the error if it cannot be read."""

    place: Place
    value: In | Failure


class OpenedRun(Protocol):
    """The run of a predictor (weft.run)."""

    @property
    def path(self) -> Path:
        """The run's directory."""

    def evaluate(self, *, split: Literal["test", "valid"], data: Path | None) -> "Evaluation":
        """Score the model on a split of its recipe's data, or on other data."""


class Predictor(ABC, Generic[In]):
    """A trained model, ready to answer.

    Attributes:
        reads: the kind of input.
        draws: whether answers have figures.
        linewise: whether each line of a text file is an input with one answer that no other line affects.
        lines: number of lines of an answer's text; a failed input gets as many empty lines.
        window: number of inputs of a file that are answered together.
        most: maximum number of series of one table, known before they are read; 0 for any number.
        piped: number of inputs of a pipe that are answered together; 1 answers each as soon as it is read.
        columns: of a table, which have the inputs; none if every line of a file is one.
        beside: further columns of its training tables, such as the classes, by which a table is known.
        file_columns: of its training tables, if the first names a file.
        origin: the run and its task, for `repr`; set by `weft.load`.

    Example:
        >>> class LengthOfTexts(Predictor[str]):
        ...     def parse(self, raw, place):
        ...         return str(raw)
        ...     def answers(self, inputs):
        ...         return (PlainAnswer(len(text)) for text in inputs)
        >>> LengthOfTexts().predict("a cat")  # the JSON of the answer
        5
    """

    reads: ClassVar[Reads] = "text"
    linewise: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    lines: int = 1
    window: int = WINDOW
    piped: int = 1
    most: int = 0
    unread: ClassVar[str] = "the model reads them as unknown"
    lacked: str = unread
    """What becomes of characters that the vocabulary lacks, for a message."""
    columns: Sequence[str] = ()
    beside: Sequence[str] = ()
    file_columns: ClassVar[Sequence[str]] = ()
    origin: str = ""
    _random: torch.Generator | None = None
    """Shared by all answers of a predictor that draws them."""
    opened: "OpenedRun | None" = None
    """The run of the model; set by `weft.load`."""
    _evaluated: "pd.DataFrame | None" = None

    @abstractmethod
    def parse(self, raw: Raw, place: Place) -> In:
        """One input, checked: the only way in, of the command, pipes, Python, the server and exports.

        Args:
            raw: text, a file or its bytes, or numbers, depending on `reads`.
            place: of the input, for the error.

        Raises:
            DataError: the model cannot read it.
        """

    @abstractmethod
    def answers(self, inputs: Sequence[In]) -> Iterable[Answer]:
        """An answer for each input, in order.

        Raises:
            DataError, ShapeError: one of them cannot be answered.
        """

    def attempts(self, inputs: Sequence[In]) -> Iterable[Answer | Failure]:
        """Like `answers`, but with an error instead of an answer for an input that cannot be answered."""
        return each(inputs, self.answers)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[In]]:
        """The inputs in a user's file or on standard input: one per line, or per row of a table.

        Raises:
            DataError: the source cannot be read.
        """
        from weft.data.lines import each_line
        from weft.data.parallel import column_texts
        from weft.data.tables import is_table

        name = name_of(source)
        table = len(self.columns) == 1 and isinstance(source, Path) and is_table(source)
        rows = column_texts(source, self.columns[0]) if table else enumerate(each_line(source), 1)  # type: ignore[arg-type]
        for number, line in rows:
            yield self.given(line, Place(name, number))

    def each_input(self, source: Path | BinaryIO) -> Iterator[ParsedInput[In]]:
        """The same, where a table may be on standard input, too: it is read as its file would be."""
        with table_as_file(source, self.is_header) as found:
            yield from self.inputs(found)

    def is_header(self, cells: Sequence[str]) -> bool:
        """Whether the cells of the first line on standard input make it a table that the model reads."""
        names = {cell.casefold() for cell in cells}
        known = [name.casefold() in names for name in (*self.columns, *self.beside)]
        return any(known) if len(cells) > 1 else bool(self.columns) and all(known[: len(self.columns)])

    def given(self, raw: Raw | DataError, place: Place) -> ParsedInput[In]:
        """One input, or the error if it cannot be read or decoded."""
        if isinstance(raw, DataError):
            return ParsedInput(place, raw.at(place.name, place.line or None))
        try:
            return ParsedInput(place, self.parse(raw, place))
        except DataError as error:
            return ParsedInput(place, error)

    def unanswered(self, given: ParsedInput[In], why: Failure) -> Answer:
        """The output for an input that cannot be answered."""
        return NoAnswer(given.place.why(why), self.lines)

    def lacking(self, value: In) -> Sequence[str]:
        """The characters of an input that the vocabulary lacks."""
        return ()

    def count(self, value: In) -> int:
        """How many items an input counts in a request, such as the series of a table."""
        return 1

    def formatted(self, answers: Iterable[Answer]) -> Iterator[tuple[Answer, str | None]]:
        """Each answer with its output in `weft predict`; None writes nothing."""
        return ((answer, answer.text()) for answer in answers)

    def file(self, answers: Sequence[tuple[Answer, str | None]], output: Path) -> bytes:
        """The content of `weft predict --output`: a line for each text unless the extension names a format.

        Args:
            answers: all of them with their outputs, as `formatted` gives them.
            output: its extension names the format.

        Raises:
            ConfigError: the format needs a library that is not installed.
        """
        return "".join(f"{text}\n" for _, text in answers if text is not None).encode("utf-8", "replace")

    def check_figures(self, *, alignments: bool) -> None:
        """Check, before anything is written, that the model has figures, or alignments of words.

        Raises:
            ConfigError: it has none.
        """
        if alignments:
            raise ConfigError("--alignments: this task does not align words; leave it out")
        if not self.draws:
            raise ConfigError("--pictures: this task has no picture of an answer; leave it out")

    def overview(self, answers: Sequence[Answer]) -> "Figure | None":
        """One figure of all drawn answers, in addition to theirs, or None."""
        return None

    def is_one(self, raw: Raw) -> bool:
        """Whether Python gave one input: a text, a mapping of columns or a row of a DataFrame; else many."""
        if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Iterable):
            return True
        if getattr(raw, "ndim", 1) == 0:  # of an array
            return True
        return type(raw).__name__ == "Series" and any(one in self.columns for one in raw.index)  # type: ignore[attr-defined]

    def value(self, answer: Any) -> Any:
        """What `predict` gives of an answer."""
        return answer.json()

    def fresh(self) -> Self:
        """The same predictor with its random numbers at their beginning."""
        if self._random is None:
            return self
        other = copy.copy(self)
        other._random = torch.Generator(self._random.device).manual_seed(self._random.initial_seed())
        return other

    def predict(self, raw: Any) -> Any:
        """The answer to one input, or an AnswerList of the answers to many.

        Args:
            raw: one input; or a list, an array, a column of a DataFrame or a DataFrame with one column. None
                and NaN among many have no answer, nor has an input that cannot be answered: `wrong` of the
                list says why, and a warning.

        Raises:
            DataError, ShapeError: the only input cannot be answered.

        Example:
            df.assign(answer=model.predict(df.text))
        """
        if not self.is_one(raw):
            return self.predict_all(raw)
        if self.reads == "text" and isinstance(raw, str) and Path(raw).suffix and os.path.isfile(raw):
            caution(f"{raw!r} was read as a text, though it names a file; give what is in it")
        remarks, value = Remarks(), self.parse(raw, Place("input"))
        (answer,) = succeeded(self.fresh().attempts([value]))
        self._see(remarks, Place("input"), value, answer)
        for line in remarks.lines():
            caution(line)
        return self.value(answer)

    def predict_all(self, raws: Iterable[Any]) -> AnswerList[Any]:
        """What `predict` gives for many inputs."""
        return self.listed(raws, self.value)

    def listed(
        self,
        raws: Iterable[Any],
        value: Callable[[Any], T],
        cell: Callable[[T], Any] | None = None,
        window: int = 0,
    ) -> AnswerList[T]:
        """The answers to many inputs.

        Args:
            raws: see `predict`.
            value: what Python gets of an answer; cell: of a value, for a column of a DataFrame.
            window: number of inputs that are answered together; 0 for the usual number.
        """
        if isinstance(raws, str | bytes | Mapping) or not isinstance(raws, Iterable):
            raise TypeError("expected several inputs, got one; give a list, or use predict(input)")
        rows = rows_of(raws, self.columns)
        index = getattr(raws, "index", None) if hasattr(raws, "iloc") else None
        return AnswerList(self._in_order(rows, window), value, cell, index=index)

    def _in_order(self, raws: Iterable[Any], window: int) -> Iterator[Answer | None]:
        """The answers to many inputs, None for a missing one; at the end what was wrong, as warnings."""
        absent: deque[bool] = deque()  # of the inputs read so far whose answers are not given yet
        remarks, wrong, count = Remarks(), list[str](), 0

        def present() -> Iterator[ParsedInput[In]]:
            for number, one in enumerate(raws):
                absent.append(missing(one))
                if not absent[-1]:
                    yield self.given(one, Place(f"inputs[{number}]"))

        for answer in answered(self.fresh(), present(), window, remarks):
            while absent.popleft():
                yield None
            count += 1
            wrong += [answer.wrong] * bool(answer.wrong)
            yield answer
        yield from (None for _ in absent)
        if wrong:
            shown = "; ".join(wrong[:3]) + ("; ..." if len(wrong) > 3 else "")
            have = "has" if len(wrong) == 1 else "have"
            caution(f"{len(wrong):,} of {plural(count, 'input')} {have} no answer: {shown}")
        for line in remarks.lines():
            caution(line)

    def _see(self, remarks: "Remarks", place: Place, value: In, answer: Answer) -> None:
        """Note what an answer lacks of its input."""
        lacking = self.lacking(value)
        if lacking or answer.lost:
            lacked = self.lacked if lacking else ""
            remarks.see(str(place), lost=answer.lost, lacking=lacking, lacked=lacked)

    def labels(self) -> Sequence[str]:
        """What it can say, such as its classes, for `repr`."""
        return ()

    def __dir__(self) -> list[str]:
        """The names that Tab offers in Python: without those that only commands and the server need."""
        contract = {name for name in vars(Predictor) if not name.startswith("_")} - {*USED_IN_PYTHON}
        return [name for name in super().__dir__() if name not in contract]

    def __repr__(self) -> str:
        shown = ", ".join(self.labels()[:8]) + ", ..." * (len(self.labels()) > 8)
        parts = [self.origin, shown and f"labels {shown}"]
        return f"<{type(self).__name__}{''.join(f'; {one}' for one in parts if one)}>"

    def evaluate(self, data: Any = None, *, split: Literal["test", "valid"] = "test") -> "pd.DataFrame":
        """Scores as `weft evaluate` prints them: a row for each, with its interval and its baselines.

        Args:
            data: other data to score: a prefix of files, a table, a DataFrame with the columns of one, or
                what `weft.fit` takes, such as a list of pairs; None for the recipe's own data.
            split: of the recipe's data.

        Raises:
            ConfigError: `weft.load` did not make this predictor.
            DataError: the data is missing or cannot be read.
        """
        if data is not None and split != "test":
            raise ConfigError(f"evaluate: split={split!r} is of the recipe's own data; leave it out, or data")
        self._evaluated = self._scored(data, split).frame()
        return self._evaluated

    def _scored(self, data: Any, split: Literal["test", "valid"] = "test") -> "Evaluation":
        """The evaluation of data, or of a split of the recipe's; its cautions are warnings."""
        run, data = self._run("evaluate"), located(data) if self.file_columns else data
        with TemporaryDirectory() as folder, given_as_file(data, Path(folder), "data", self.cells) as file:
            found = run.evaluate(split=split, data=file)
            if file is not None and not isinstance(data, str | Path):
                found = replace(found, title=in_python(found.title, [GivenData("data", data, file)]))  # type: ignore[type-var]
        for line in found.cautions():
            caution(line)
        return found

    def _repr_html_(self) -> str:
        """What a notebook shows: run, task and labels, and the scores of the last `evaluate`."""
        said = f"<p><code>{html.escape(repr(self))}</code></p>"
        scores = self._evaluated
        return said if scores is None else said + str(scores.drop(columns="signature").to_html())

    @property
    def cells(self) -> Sequence[str]:
        """Names for the cells of a tuple: an input and its answer."""
        return self.file_columns or [*self.columns, *self.beside]

    @property
    def recipe(self) -> str:
        """The recipe of the run, with every default; `weft train` takes it as a file.

        Raises:
            ConfigError: `weft.load` did not make this predictor.
        """
        return (self._run("recipe").path / "recipe.yaml").read_text("utf-8")

    def plot(self, raw: Any = None, **wrong: Any) -> "Figure":
        """The picture of an answer or of scores; or the curves of the training.

        Args:
            raw: one input, see `predict`, for its answer, such as a forecast with its past; several, as
                `evaluate` takes them, for their scores, such as a confusion matrix; None for the curves.

        Raises:
            ConfigError: answers of this task have no picture, a file to write was named, or `weft.load` did
                not make this predictor.

        Example:
            model.plot(frame).savefig("forecast.png")
        """
        for one in (raw, *wrong.values()):
            if isinstance(one, str | Path) and _PICTURE.fullmatch(str(one)) and not os.path.isfile(one):
                raise ConfigError(f"plot returns a figure; call .savefig({str(one)!r})")
        if wrong:
            raise TypeError(f"plot: expected one input, got {next(iter(wrong))}= too; leave it out")
        library("matplotlib", "pictures", "plot")
        from weft.figures.picture import for_notebook

        if raw is None:
            return for_notebook(self._inspector().curves_of(self._run("plot")))
        if not self.is_one(raw):
            return for_notebook(self._scored(raw).figure(self._run("plot").path.name))
        (answer,) = succeeded(self.fresh().attempts([self.parse(raw, Place("input"))]))
        if (figure := answer.figure()) is None:
            raise ConfigError("plot: an answer of this task has no picture; plot() has the training's curves")
        return for_notebook(figure)

    def inspect(self, text: str | None = None, view: str = "") -> Any:
        """The page of `weft inspect` for a notebook: attention, states and search for one text.

        Args:
            text: an input; None for an example from the validation data.
            view: the view to open, such as alignment; by default the first.

        Raises:
            ConfigError: there is no such view, or `weft.load` did not make this predictor.
        """
        if text is not None and not isinstance(text, str):
            raise DataError(f"inspect: expected one text, got {kind_of(text)}")
        library("matplotlib", "pictures", "inspect")
        return self._inspector().shown(self._run("inspect"), text, view)

    def save(self, folder: str | Path) -> None:
        """Copy what `weft.load` needs into a new folder: the model, its vocabularies and its recipe.

        Raises:
            ConfigError: the folder is not empty, or `weft.load` did not make this predictor.
        """
        if not isinstance(folder, str | Path):
            raise ConfigError(f"save: expected a folder, got {kind_of(folder)}")
        run, to = self._run("save"), Path(folder)
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            what = "one with files" if to.is_dir() else "a file"
            raise ConfigError(f"{to}: expected a new folder, got {what}; choose another")
        to.mkdir(parents=True, exist_ok=True)
        for file in run.path.iterdir():
            if file.is_dir() and file.name not in UNSAVED:
                shutil.copytree(file, to / file.name)
            elif not file.name.startswith(".") and file.name not in UNSAVED:
                shutil.copy2(file, to / file.name)

    def _run(self, asked: str) -> "OpenedRun":
        if self.opened is None:
            raise ConfigError(f"{asked}: expected a model from weft.load(run), got a predictor without a run")
        return self.opened

    @staticmethod
    def _inspector() -> Any:
        """The room of views, found by its name, as it is built on tasks."""
        return importlib.import_module("weft.inspect.inspection")


class Remarks:
    r"""What answers lack of their inputs, for standard error: placeholders, and characters without a token.

    Example:
        >>> remarks = Remarks()
        >>> remarks.see("in.txt:3", lost="expected placeholders %s, got none")
        >>> remarks.see("in.txt:4", lacking=["🙂"], lacked="the answers copy them")
        >>> remarks.see("in.txt:7", lacking=["🙂", "京"], lacked="the answers copy them")
        >>> print(*remarks.lines(), sep="\n")
        in.txt:3: expected placeholders %s, got none
        the vocabulary lacks 🙂 京, in 2 inputs, the first in.txt:4; the answers copy them
    """

    def __init__(self) -> None:
        self._lost: list[str] = []
        self._lacking: dict[str, None] = {}
        self._places = 0
        self._first = self._lacked = ""

    def see(self, place: str, *, lost: str = "", lacking: Sequence[str] = (), lacked: str = "") -> None:
        """Note what one answer lacks."""
        if lost:
            self._lost.append(f"{place}: {lost}")
        if lacking:
            self._first, self._lacked = self._first or place, lacked
            self._lacking |= dict.fromkeys(lacking)
            self._places += 1

    def lines(self) -> list[str]:
        """A line for each answer with a wrong placeholder, and one that names the characters."""
        if not self._lacking:
            return self._lost
        where = f"in {plural(self._places, 'input')}, the first {self._first}"
        return [*self._lost, f"the vocabulary lacks {named(list(self._lacking))}, {where}; {self._lacked}"]

    @property
    def named(self) -> int:
        """How many answers are named."""
        return len(self._lost)

    def as_json(self) -> str:
        """For `add`; empty if there is none."""
        held = self._lost, list(self._lacking), self._places, self._first, self._lacked
        return json.dumps(held) if self._lost or self._lacking else ""

    def add(self, text: str) -> None:
        """Add later remarks, from `as_json`."""
        lost, lacking, places, first, lacked = json.loads(text)
        self._lost += lost
        self._lacking |= dict.fromkeys(lacking)
        self._places += places
        self._first, self._lacked = self._first or first, lacked or self._lacked


def answered(
    predictor: Predictor[In],
    given: Iterable[ParsedInput[In]],
    window: int = 0,
    remarks: Remarks | None = None,
) -> Iterator[Answer]:
    """An answer for each input, in order; a failed input gives its reason and does not stop the others."""
    rest, remarks = iter(given), remarks or Remarks()
    while part := list(islice(rest, window or predictor.window)):
        readable = [one.value for one in part if not isinstance(one.value, DataError | ShapeError)]
        found = iter(predictor.attempts(readable) if readable else ())
        for one in part:
            value = one.value
            answer = value if isinstance(value, DataError | ShapeError) else next(found)
            if isinstance(answer, DataError | ShapeError):
                yield predictor.unanswered(one, answer)
                continue
            assert not isinstance(value, DataError | ShapeError)
            predictor._see(remarks, one.place, value, answer)
            yield answer


class PredictedAnswers(NamedTuple, Generic[A]):
    """What prediction answers to the inputs of an evaluation."""

    answers: list[A | None]  # None for an input without an answer
    wrong: list[str]  # place and reason of each of these
    seconds: float

    def checked(self) -> "PredictedAnswers[A]":
        """The same, or an error if no input has an answer."""
        if self.wrong and len(self.wrong) == len(self.answers):
            raise DataError(self.wrong[0])
        return self


def predicted(
    predictor: Predictor[Any], given: Iterable[ParsedInput[Any]], kind: type[A]
) -> PredictedAnswers[A]:
    """The answers to be scored: those that `weft predict` gives, by the same call."""
    begun = time.perf_counter()
    found = list(answered(predictor, given))
    seconds = time.perf_counter() - begun
    wrong = [one.wrong for one in found if one.wrong]
    return PredictedAnswers([one if isinstance(one, kind) else None for one in found], wrong, seconds)


def as_text(raw: Raw, place: Place, columns: Sequence[str] = (), border: str = NO_BORDER) -> str:
    """The text of an input, with a border between the texts of several columns."""
    if columns and not isinstance(raw, str) and hasattr(raw, "keys"):
        absent = next((name for name in columns if name not in raw), None)
        if absent is not None:
            raise place.refuse(f"expected the column {absent!r}, got {', '.join(map(str, raw.keys()))[:200]}")
        cells = ["" if missing(raw[name]) else as_text(raw[name], place) for name in columns]
        return joined_columns(cells, border)
    if not isinstance(raw, str):
        raise place.refuse(f"expected a text, got {kind_of(raw)}")
    return raw


def succeeded(attempts: Iterable[R | Failure]) -> Iterator[R]:
    """Each answer, up to the first error, which is raised."""
    for one in attempts:
        if isinstance(one, DataError | ShapeError):
            raise one
        yield one


def read_each(
    source: Path | BinaryIO, files: Iterable[tuple[Path, Place]], read: Callable[[Path], In]
) -> Iterator[ParsedInput[In]]:
    """Read each file of a source; a file that cannot be read gives an error instead of its content."""
    for path, place in files:
        try:
            yield ParsedInput(place, read(path))
        except DataError as error:
            if path == source:
                raise
            yield ParsedInput(place, error)


def each(items: Sequence[T], answer: Callable[[Sequence[T]], Iterable[R]]) -> Iterator[R | Failure]:
    """An answer for each item, in order, or the error if it cannot be answered."""
    try:
        found = list(answer(items)) if items else []
    except (DataError, ShapeError) as error:
        if len(items) == 1:
            yield error
            return
        found = None
    except torch.OutOfMemoryError:
        if len(items) < 2:
            raise
        found = None
    if found is None:  # outside of the except block, because the error keeps the tensors of the batch alive
        middle = len(items) // 2
        yield from each(items[:middle], answer)
        yield from each(items[middle:], answer)
        return
    yield from found
