"""The contracts of answering: a Predictor reads and answers inputs, an Answer is text, JSON or a picture.

`weft predict`, the server, the inspector and `weft.load` use these and nothing else of a task.
Read next: each.py; tag/predictor.py, a short one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Generic, Literal, NamedTuple, TypeVar

from weft.errors import ConfigError, DataError, ShapeError
from weft.tasks.each import Failure, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Raw = str | bytes | Sequence[float]
Reads = Literal["text", "numbers", "picture", "sound"]
In = TypeVar("In")

WINDOW = 1024
"""Inputs of a file that are answered together."""


class Place(NamedTuple):
    """Where an input stands, such as in.txt:3."""

    name: str  # of the file, or what stands for it
    line: int = 0  # from 1; 0 where there are no lines

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name

    def why(self, error: Failure) -> str:
        """The sentence of an error, with this place unless it has one."""
        known = isinstance(error, DataError) and error.path == self.name and error.line == (self.line or None)
        return str(error) if known else f"{self}: {error}"

    def refuse(self, why: str) -> DataError:
        """The error that says what is wrong with this input."""
        return DataError(why, path=self.name, line=self.line or None)


class Answer(ABC):
    """The answer to one input; nothing of it is made before it is asked for."""

    wrong: str = ""
    """Why there is no answer, with the place of the input; empty where there is one."""

    @abstractmethod
    def text(self) -> str:
        """What `weft predict` writes, one or more lines without the last line end."""

    @abstractmethod
    def json(self) -> Json:
        """What the server sends."""

    def figure(self) -> "Figure | None":
        """The picture of `weft predict --plot`; None where there is nothing to draw."""
        return None

    def pictures(self) -> Mapping[str, bytes]:
        """The files of `weft predict --plot`, by their endings: the figure as PNG and SVG."""
        from weft.figures.picture import png, svg

        figure = self.figure()
        return {} if figure is None else {".png": png(figure), ".svg": svg(figure).encode()}

    def figure_name(self) -> str:
        """The name of the picture's file without its ending; "" for the number of the answer."""
        return ""

    def alignment(self) -> str:
        """Which source word each word of the answer came from, as Pharaoh pairs: 0-0 1-2."""
        return ""


class Unanswered(Answer):
    """Empty lines in the place of an answer.

    Args:
        wrong: why, with the place of the input.
        lines: that an answer has.
    """

    def __init__(self, wrong: str, lines: int = 1) -> None:
        self.wrong = wrong
        self.lines = lines

    def text(self) -> str:
        return "\n" * (self.lines - 1)

    def json(self) -> Json:
        return None


class Given(NamedTuple, Generic[In]):
    """An input of a source: what was read, or why it cannot be."""

    place: Place
    value: In | Failure


class Predictor(ABC, Generic[In]):
    """A trained model, ready to answer.

    Attributes:
        reads: what an input is.
        linewise: whether each line of a text file is one input and has one answer, whatever stands beside it.
        lines: that an answer has as text; an input without an answer gets as many empty ones.
        window: inputs of a file that are answered together.
        piped: inputs of a pipe that are answered together; 1 answers each as soon as it is read.
    """

    reads: ClassVar[Reads] = "text"
    linewise: ClassVar[bool] = True
    lines: int = 1
    window: int = WINDOW
    piped: int = 1

    @abstractmethod
    def parse(self, raw: Raw, place: Place) -> In:
        """One input, checked. All refusals of an input are here.

        Args:
            raw: text; the bytes of a file; or numbers, as `reads` says.
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
        """As `answers`; an input that cannot be answered has the reason in the place of its answer."""
        return each(inputs, self.answers)

    def inputs(self, source: Path | BinaryIO) -> Iterator[Given[In]]:
        """The inputs of a file of the user, or of standard input: one a line.

        Raises:
            DataError: the source cannot be read.
        """
        from weft.data.lines import read_lines

        name = name_of(source)
        for number, line in enumerate(read_lines(source), 1):
            yield self.given(line, Place(name, number))

    def given(self, raw: Raw, place: Place) -> Given[In]:
        """One input, or why it cannot be read."""
        try:
            return Given(place, self.parse(raw, place))
        except DataError as error:
            return Given(place, error)

    def unanswered(self, given: Given[In], why: Failure) -> Answer:
        """What is written for an input that has no answer."""
        return Unanswered(given.place.why(why), self.lines)

    def count(self, value: In) -> int:
        """How many items of a request an input is, such as the series of a table."""
        return 1

    def written(self, answers: Iterable[Answer]) -> Iterator[tuple[Answer, str | None]]:
        """Each answer with what `weft predict` writes for it; None where nothing is written."""
        return ((answer, answer.text()) for answer in answers)

    def file(self, texts: Sequence[str], output: Path) -> bytes:
        """What `weft predict --output` writes; a line each unless the ending asks for more.

        Args:
            texts: of all answers.
            output: its ending names the format.

        Raises:
            ConfigError: the format needs a library that is not installed.
        """
        return "".join(f"{text}\n" for text in texts).encode("utf-8", "replace")

    def check_figures(self, *, alignments: bool) -> None:
        """Refuse pictures, or alignments of words, that this model cannot give, before anything is written.

        Raises:
            ConfigError: it has none.
        """
        raise ConfigError(
            "--alignments: this task aligns no words; leave it out"
            if alignments
            else "--plot: this task has no picture of an answer; leave it out"
        )

    def overview(self, answers: Sequence[Answer]) -> "Figure | None":
        """One picture of all answers that were drawn, beside theirs; None where there is none."""
        return None

    def predict(self, raw: Any) -> Any:
        """The answer to one input, for Python."""
        return next(iter(self.answers([self.parse(raw, Place("input"))]))).json()


def answered(predictor: Predictor[In], given: Iterable[Given[In]], window: int = 0) -> Iterator[Answer]:
    """An answer for each input, in order; one that has none says why and ends nothing.

    Args:
        predictor: answers.
        given: the inputs.
        window: inputs that are answered together; the predictor's by default.
    """
    rest = iter(given)
    while part := list(islice(rest, window or predictor.window)):
        readable = [one.value for one in part if not isinstance(one.value, DataError | ShapeError)]
        found = iter(predictor.attempts(readable) if readable else ())
        for one in part:
            answer = one.value if isinstance(one.value, DataError | ShapeError) else next(found)
            yield predictor.unanswered(one, answer) if isinstance(answer, DataError | ShapeError) else answer


def name_of(source: Path | BinaryIO) -> str:
    """What a source is called in an error."""
    return str(source) if isinstance(source, Path) else "standard input"
