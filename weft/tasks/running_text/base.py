"""What tasks that predict running text share: section `data`, task, pipeline, perplexities by context.

Read next: ../../data/plain.py, which reads the text; ../masked/task.py, a short task.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from weft.data.batching import Batches
from weft.data.check import check_pairs
from weft.data.conllu import ConlluSentence
from weft.data.plain import PlainText, side
from weft.data.report import Report
from weft.data.several import Files, called, each_file
from weft.errors import ConfigError, MissingSplitError
from weft.figures.records import Figure
from weft.metrics.metric import ItemKind
from weft.setting_types import AtLeastOne, Share, check_fields
from weft.tasks.evaluation import Evaluation
from weft.tasks.init import FEWEST
from weft.tasks.task import Pipeline, Progress, Scoring, Split, Task
from weft.tasks.vocabulary import Lexicon, TextVocabulary
from weft.text.pieces import cut_words

Batching = Literal["stream", "windows", "lines"]
M = TypeVar("M")
T = TypeVar("T")
U = TypeVar("U")
VOCABULARY = "tokenizer.json"


@dataclass(frozen=True, kw_only=True)
class ProseData:
    """The source of running text.

    Args:
        folder: folder of train, valid and test; by default the current one.
        train, valid, test: text files, also .gz, .xz, .zst. train may be a list of them and of folders.
        valid_share: without `valid`, this share of characters at the end of `train` is the validation text.
        corpus: an embedded corpus instead of files.
        language: of the corpus.
        vocabulary: how it is tokenised.
        batches: "stream" reads the text in `batch_rows` long rows, piece after piece, and carries the state
            from batch to batch (recurrent networks); "windows" draws pieces from anywhere (Transformers);
            "lines" takes each line alone.
        length: tokens of a piece or window; with lines, batch_rows * length tokens make a batch.
        batch_rows: pieces per batch.
    """

    folder: Path = Path()
    train: Files | None = None
    valid: str | None = None
    test: str | None = None
    valid_share: Share = 0.0
    corpus: str | None = None
    language: str | None = None
    vocabulary: TextVocabulary = field(default_factory=TextVocabulary)
    batches: Batching = "stream"
    length: AtLeastOne = 35
    batch_rows: AtLeastOne = 20

    renamed: ClassVar[Mapping[str, str]] = {"rows": "batch_rows"}

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.corpus is None) == (self.train is None):
            raise ConfigError("set exactly one of corpus (embedded) and train (your file)")
        if (self.corpus is None) != (self.language is None):
            raise ConfigError("language: needs corpus; set both, such as libreoffice-help and en")
        given = (self.corpus is not None) + (self.valid is not None) + (self.valid_share > 0)
        if given != 1:
            raise ConfigError(
                "valid: expected exactly one validation text: a file (valid), the last part of train "
                "(valid_share: 0.1), or that of a corpus"
            )

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        if split == "valid":
            return True
        return self.corpus is not None or getattr(self, split) is not None

    def find(self, split: Split) -> None:
        """Check that the text of a split is there; raises as `open`."""
        self.open(split)

    def open(self, split: Split) -> PlainText:
        """The text of a split."""
        if self.corpus is not None and self.language is not None:
            return side(self.corpus, self.language, split)
        paths, begin, end = self._part(split)
        return PlainText(paths, begin=begin, end=end)

    def describe(self, split: Split) -> str:
        """For signatures, such as "libreoffice-help en test"; does not need the file."""
        if self.corpus:
            return f"{self.corpus} {self.language} {split}"
        paths, begin, end = self._part(split)
        name = called([str(path) for path in paths])
        return name if (begin, end) == (0, 1) else f"{name}[{begin:g}:{end:g}]"

    def _part(self, split: Split) -> tuple[list[Path], float, float]:
        """The files of a split, and the range of them that is used."""
        if self.valid_share and split != "test":
            cut = 1 - self.valid_share
            return each_file(self.train or "", self.folder), *((0.0, cut) if split == "train" else (cut, 1.0))
        path = getattr(self, split)
        if path is None:
            raise MissingSplitError.of(split, "text", "FILE")
        return each_file(path, self.folder), 0.0, 1.0


def line_batches(data: ProseData, lines: Sequence[Sized], seed: int) -> Batches:
    """Batches of lines of similar length, by their numbers."""
    sides = np.array([[len(line)] * 2 for line in lines])
    return Batches(sides, max_tokens=data.batch_rows * data.length, max_rows=None, seed=seed)


def words_of(data: ProseData, line: str) -> list[str]:
    """The words of a line, split as data.vocabulary sets."""
    settings = data.vocabulary
    return cut_words(line, settings.kind, form=settings.form, lowercase=settings.lowercase)


class Parts(Generic[T]):
    """Lines that are cut into parts of at most `length` tokens or words; empty ones have none.

    Example:
        >>> cut = Parts([[4, 5, 6], [], [7]], 2)
        >>> cut.parts, cut.line, cut.joined([["a", "b"], ["c"], ["d"]])
        ([[4, 5], [6], [7]], [0, 0, 2], [['a', 'b', 'c'], [], ['d']])
    """

    def __init__(self, lines: Iterable[list[T]], length: int) -> None:
        self.parts: list[list[T]] = []  # of all lines, one after the other
        self.line: list[int] = []  # the number of each part's line
        self.lines = 0
        for row in lines:
            cut = [row[at : at + length] for at in range(0, len(row), length)]
            self.parts += cut
            self.line += [self.lines] * len(cut)
            self.lines += 1

    def joined(self, answers: Iterable[Iterable[U]]) -> list[list[U]]:
        """What was answered to each part, line by line."""
        found: list[list[U]] = [[] for _ in range(self.lines)]
        for line, answer in zip(self.line, answers, strict=True):
            found[line].extend(answer)
        return found


def sentences(data: ProseData, lines: Iterable[str]) -> Parts[str]:
    """Parts of at most `data.length` words."""
    return Parts((words_of(data, line) for line in lines), data.length)


def sentences_of(data: ProseData, split: Split) -> list[list[str]]:
    """The sentences of a split."""
    return sentences(data, data.open(split)).parts


def learn_lexicon(some: Iterable[list[str]], *, min_count: int) -> Lexicon:
    """A lexicon of the words that occur at least `min_count` times, and of all letters."""
    read = (ConlluSentence(words, 0, [], words, None) for words in some)
    return Lexicon.learn(read, lowercase=False, min_count=min_count)


def check_lines(data: ProseData, *, words: bool) -> None:
    """Check that the settings fit a model that reads whole lines."""
    if data.batches != "lines":
        raise ConfigError(
            f"data: batches is {data.batches}, but this task reads each line separately; set batches: lines"
        )
    if words and data.vocabulary.kind not in ("word", "space"):
        raise ConfigError(
            f"data: vocabulary.kind: expected word, or space for tokenised text, got "
            f"{data.vocabulary.kind}; this task predicts whole words"
        )


class RunningTextTask(Task, Generic[M]):
    """A task that predicts running text."""

    least: ClassVar[int] = FEWEST
    data: ProseData
    model_config: M

    def saved(self, run: Path) -> Path:
        return run / VOCABULARY

    def learn(self, corpus: Any, run: Path, progress: Progress) -> None:
        progress("learning the vocabulary", 0, None)
        self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)

    @classmethod
    def check(cls, files: Sequence[Path], /) -> Report:
        """Check plain text; see weft/data/check.py."""
        return check_pairs(*files, pairs=False)


class RunningTextPipeline(Pipeline):
    """What a task on running text has learnt."""

    task: RunningTextTask[Any]

    @abstractmethod
    def scores(self, model: Any, text: PlainText, title: str, asked: Scoring) -> Evaluation:
        """Perplexities on a text beside their baselines."""

    def score(self, model: Any, asked: Scoring) -> Evaluation:
        own, data = self.task.data, asked.data
        if data is None:
            return self.scores(model, own.open(asked.split), own.describe(asked.split), asked)
        return self.scores(model, PlainText(data), str(data), asked)

    def valid_texts(self) -> Iterable[str]:
        """The validation text, line by line."""
        return self.task.data.open("valid")


class Side(NamedTuple):
    """The loss of each word, and the length of its context."""

    name: str
    words: np.ndarray  # [N] length of the context in words
    nats: np.ndarray  # [N]


@dataclass(frozen=True)
class ContextEvaluation(Evaluation):
    """Scores next to their baselines."""

    sides: list[Side]
    beside: str  # what Side.words counts
    shows: ClassVar[str] = "nats by length of the context"
    offers: ClassVar[tuple[ItemKind, ...]] = ("nats",)

    def figure(self, name: str) -> "Figure":
        """The loss by length of the context, with a line for each direction."""
        from weft.figures.charts import by_place

        lines = {side.name: (side.words, side.nats) for side in self.sides}
        nats = {name: math.log(value) for name, value in self.scores[0].baselines.items()}
        title = f"{name}: {self.title}"
        return by_place(lines, x=self.beside, y="nats", title=title, baselines=nats)
