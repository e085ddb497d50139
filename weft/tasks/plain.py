"""A task whose examples are lines of a file: only their form, the model and its answers are its own.

Files, vocabulary, batches, validation, prediction and scores are here. Read next: task.py, the contracts, for
a task that needs more.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.data.batching import ShuffledBatches
from weft.data.lines import read_lines
from weft.errors import MissingSplitError
from weft.metrics.metric import Metric
from weft.metrics.scored import scored
from weft.nn.heads.head import Loss
from weft.search.offered import BatchRows
from weft.setting_types import Section
from weft.tasks.evaluation import PlainEvaluation, Sample, Validation, mean_loss, samples_of
from weft.tasks.predictor import ParsedInput, Place, PlainAnswer, Predictor, as_text, predicted
from weft.tasks.task import (
    Pipeline,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Task,
    Training,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary
from weft.wording import plural

Pairs = Sequence[tuple[Any, Any]]
"""Inputs and their answers."""


@dataclass(frozen=True, kw_only=True)
class PlainData(Section):
    """A recipe's section `data`: files with an example in each line.

    Args:
        train, valid, test: the files; without a test file only the validation examples are scored.
        batch_rows: examples in a batch.

    Example:
        >>> PlainData(train=Path("train.tsv"), valid=Path("valid.tsv")).has("test")
        False
    """

    train: Path
    valid: Path
    test: Path | None = None
    batch_rows: BatchRows = 32

    def has(self, split: Split) -> bool:
        """Whether there is a file."""
        return getattr(self, split) is not None

    def find(self, split: Split) -> None:
        """Check that a file can be read."""
        next(read_lines(getattr(self, split)))


class PlainTask(Task):
    """A task whose examples are lines of a file; a subclass is all that a new one needs.

    Attributes:
        sections: a recipe's `data`, usually PlainData, and `model`, a dataclass with `build(num_words)`.
        metric: of the answers as texts.
        form: of an answer that is a number, such as ".2f".

    Example:
        >>> from weft.metrics import Accuracy
        >>> class Parity(PlainTask):
        ...     metric = Accuracy()
        ...     def read_input(self, text):
        ...         return text
        ...     def read_example(self, line):
        ...         return line.split()
        ...     def batch(self, words, inputs, answers=None):
        ...         return inputs
        ...     def answer(self, model, batch):
        ...         return ["even" if len(text) % 2 == 0 else "odd" for text in batch]
        >>> Parity.better
        {'loss': 'lower', 'accuracy': 'higher'}
    """

    data: PlainData
    metric: ClassVar[Metric]
    form: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if "metric" in vars(cls):
            cls.better = {
                "loss": "lower",
                cls.metric.key: "higher" if cls.metric.higher_is_better else "lower",
            }

    @abstractmethod
    def read_input(self, text: str) -> Any:
        """An input from a line that is not empty; a ValueError says what was expected, and got."""

    @abstractmethod
    def read_example(self, line: str) -> tuple[Any, Any]:
        """The input and the answer of a line of a file; errors as in `read_input`."""

    def texts(self, given: Any) -> Iterable[str]:
        """The texts of an input, of whose words the vocabulary is made."""
        return [given]

    @abstractmethod
    def batch(self, words: Vocabulary, inputs: Sequence[Any], answers: Sequence[Any] | None = None) -> Any:
        """What the model reads, with `to(device)` and `target_tokens`; answers are None to predict."""

    @abstractmethod
    def answer(self, model: Any, batch: Any) -> Sequence[str | float]:
        """The answer to each input of a batch; gradients are off."""

    def guess(self, answers: Sequence[Any]) -> tuple[str, Any]:
        """The baseline: its name, and its answer to every input, from those of the training examples."""
        return "most frequent answer", Counter(answers).most_common(1)[0][0]

    def about(self) -> str:
        return f"{type(self).__name__} on {self.data.train.name}"

    def small_model(self) -> nn.Module:
        return self.model_config.build(9)  # type: ignore[no-any-return]

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        """None for inputs with tabs, which are not typed."""
        return None if any("\t" in one for one in sources) else super().predict_example(sources)

    def rehearse(self) -> Loss:
        pairs = self.examples(self.data.train)[:2]
        words = self._words(pairs)
        loss: Loss = self.model_config.build(len(words)).loss(self.batch(words, *zip(*pairs, strict=True)))
        return loss

    def examples(self, path: Path) -> Pairs:
        """The inputs and the answers in a file."""
        lines = enumerate(read_lines(path), 1)
        return [placed(Place(str(path), number), self.read_example, line) for number, line in lines]

    def read(self, progress: Progress) -> Pairs:
        return self.examples(self.data.train)

    def learn(self, corpus: Pairs, run: Path, progress: Progress) -> None:
        self._words(corpus).save(run / "tokenizer.json")

    def open(self, run: Path) -> "PlainPipeline":
        return PlainPipeline(self, load_vocabulary(run / "tokenizer.json"))

    def training(self, corpus: Pairs, pipeline: "PlainPipeline", run: Path, progress: Progress) -> Training:
        return PlainTraining(pipeline, corpus)

    def _words(self, pairs: Pairs) -> Vocabulary:
        texts = (text for given, _ in pairs for text in self.texts(given))
        return Vocabulary.train(texts, kind="word", size=None)


class PlainTraining(Training):
    """The examples of the training file, and the validation."""

    def __init__(self, pipeline: "PlainPipeline", pairs: Pairs) -> None:
        self._pipeline, self._pairs = pipeline, pairs

    def plan(self, seed: int) -> ShuffledBatches:
        return ShuffledBatches(len(self._pairs), self._pipeline.task.data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> Any:
        return self._pipeline.batch([self._pairs[n] for n in numbers])

    def validate(self, model: Any) -> Validation:
        task = self._pipeline.task
        pairs, rows = task.examples(task.data.valid), task.data.batch_rows
        parts = (pairs[at : at + rows] for at in range(0, len(pairs), rows))
        found = self._pipeline.evaluate(model, split="valid")
        scores = {"loss": mean_loss(model, map(self._pipeline.batch, parts))}
        shown = [(*pairs[n], found.outputs[n]) for n in samples_of(len(pairs))]
        samples = [
            Sample("\t".join(task.texts(given)), format(answer, task.form), output)
            for given, answer, output in shown
        ]
        return Validation(scores | {task.metric.key: found.scores[0].value}, samples)


class PlainPipeline(Pipeline):
    """A task with its words."""

    task: PlainTask

    def __init__(self, task: PlainTask, words: Vocabulary) -> None:
        self.task, self.words = task, words

    def model(self) -> nn.Module:
        return self.task.model_config.build(len(self.words))  # type: ignore[no-any-return]

    def batch(self, pairs: Pairs) -> Any:
        """A batch of these examples."""
        return self.task.batch(self.words, *zip(*pairs, strict=True))

    def predictor(self, model: Any, settings: PredictionSettings | None = None) -> "PlainPredictor":
        return PlainPredictor(self, model)

    def score(self, model: Any, asked: Scoring) -> PlainEvaluation:
        """The score of the answers to a file, beside that of the baseline."""
        task, form = self.task, self.task.form
        path = asked.data or getattr(task.data, asked.split)
        if path is None:
            raise MissingSplitError.of(asked.split, "examples", "FILE")
        inputs, true = zip(*task.examples(path), strict=True)
        given = (ParsedInput(Place(str(path), n), one) for n, one in enumerate(inputs, 1))
        found = predicted(self.predictor(model), given, PlainAnswer).checked()
        outputs = ["" if one is None else one.text() for one in found.answers]
        name, guess = task.guess([answer for _, answer in task.examples(task.data.train)])
        references, lowest = [format(one, form) for one in true], {name: [format(guess, form)] * len(true)}
        score = scored(task.metric, outputs, references, baselines=lowest)
        return PlainEvaluation(f"{path.name}, {plural(len(true), 'example')}", outputs, [score])


class PlainPredictor(Predictor[Any]):
    """The trained model of a PlainTask."""

    def __init__(self, pipeline: PlainPipeline, model: Any) -> None:
        self._task, self._words, self._model = pipeline.task, pipeline.words, model

    def parse(self, raw: Any, place: Place) -> Any:
        text = as_text(raw, place)
        if not text.strip():
            raise place.refuse("expected a text, got an empty line")
        return placed(place, self._task.read_input, text)

    def answers(self, inputs: Sequence[Any]) -> Iterator[PlainAnswer]:
        device, rows = next(self._model.parameters()).device, self._task.data.batch_rows
        for at in range(0, len(inputs), rows):
            batch = self._task.batch(self._words, inputs[at : at + rows]).to(device)
            with torch.no_grad():
                found = self._task.answer(self._model, batch)
            yield from (PlainAnswer(one, self._task.form) for one in found)


def placed(place: Place, read: Any, text: str) -> Any:
    """What a task reads in a text; its errors get the place."""
    try:
        return read(text)
    except ValueError as error:
        raise place.refuse(str(error)) from None
