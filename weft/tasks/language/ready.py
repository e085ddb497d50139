"""Language modelling, made ready: the vocabulary of the run, and the text while a model is trained on it.

Read next: predictor.py; evaluation.py.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.plain import PlainText
from weft.errors import DataError
from weft.models import Generator
from weft.tasks.exported import Exported
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.language.cache import Cache
from weft.tasks.language.evaluation import ProseEvaluation, counted_for, evaluate
from weft.tasks.language.mixture import parts_of
from weft.tasks.language.predictor import Writer
from weft.tasks.language.scoring import token_logp
from weft.tasks.language.step import Mixed
from weft.tasks.language.stream import (
    Pieces,
    ProseBatch,
    Stream,
    Windows,
    collate_lines,
    cut,
    line_batches,
    lines_of,
    rarity,
)
from weft.tasks.language.stream import read as read_text
from weft.tasks.language.writing import Writing
from weft.tasks.running_text.data import ProseData
from weft.tasks.task import Pipeline, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, samples_of
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.language.task import Language

VALIDATION_ROWS = 8


def read(data: ProseData, vocabulary: Vocabulary, split: Split) -> Stream:
    """The text of a split as tokens."""
    return read_text(data.open(split), vocabulary)


def as_read(data: ProseData, vocabulary: Vocabulary) -> ProseData:
    """The recipe's section; a vocabulary that reads whole texts has windows instead of lines."""
    whole = vocabulary.opening is not None and data.batches == "lines"
    return replace(data, batches="windows") if whole else data


class LanguageTraining(Training):
    """The training text.

    Args:
        data: the recipe's section.
        vocabulary: of the run.
        train, valid: the text as tokens.
        most: positions of the model; longer training lines are left out. None for no limit.
    """

    def __init__(
        self,
        data: ProseData,
        vocabulary: Vocabulary,
        train: Stream,
        valid: Stream,
        most: int | None = None,
    ) -> None:
        self.streams = data.batches == "stream"
        self.text = train
        self._data = data
        self._vocabulary = vocabulary
        self._valid = valid
        lines = list(lines_of(train)) if data.batches == "lines" else []
        self._lines = [line for line in lines if most is None or len(line) < most]
        self.left_out = len(lines) - len(self._lines)

    def plan(self, seed: int) -> Pieces | Windows | Batches:
        """Consecutive pieces of the training text, random windows, or lines."""
        rows, length = self._data.rows, self._data.length
        if self._data.batches == "stream":
            return Pieces(self.text.size, rows=rows, length=length)
        if self._data.batches == "windows":
            return Windows(self.text.size, rows=rows, length=length, seed=seed)
        return line_batches(self._lines, rows=rows, length=length, seed=seed)

    def collate(self, numbers: np.ndarray) -> ProseBatch:
        """The pieces that begin at these places, or the lines of these numbers."""
        if self._data.batches == "lines":
            return collate_lines([self._lines[int(number)] for number in numbers])
        part = self.text.size // self._data.rows
        length = self._data.length
        if self.streams:
            length = min(length, part - int(numbers[0]))
        return cut(self.text.tokens, numbers, length, continues=self.streams and numbers[0] > 0)

    def validate(self, model: nn.Module) -> Validation:
        """Loss and perplexity per token of the validation text, line ends included."""
        assert isinstance(model, Generator)
        data = self._data
        logp = token_logp(model, self._valid, data.batches, length=data.length, rows=VALIDATION_ROWS)
        loss = float(-logp.mean())
        return Validation({"loss": loss, "perplexity": math.exp(min(loss, 700.0))}, self._samples(model))

    def _samples(self, model: Generator) -> list[Sample]:
        """The first half of some lines of the validation text, continued greedily."""
        lines = [line.tolist() for line in islice(lines_of(self._valid), 200) if len(line) > 1]
        data, how = self._data, Writing(search="greedy", max_tokens=30)
        writer = Writer(model, self._vocabulary, how, batching=data.batches, length=data.length)
        shown = [lines[number] for number in samples_of(len(lines))]
        begun = [self._vocabulary.decode(line[: len(line) // 2]) for line in shown]
        whole = [self._vocabulary.decode(line) for line in shown]
        written = [found[0].text for found in writer.write(begun)]
        return [Sample(*three) for three in zip(begun, whole, written, strict=True)]


class LanguagePipeline(Pipeline):
    """The vocabulary of a run.

    Args:
        task: the recipe.
        vocabulary: of the training text.
        training: the text; None unless prepared for training.
    """

    task: "Language"

    def __init__(
        self, task: "Language", vocabulary: Vocabulary, training: LanguageTraining | None = None
    ) -> None:
        self.task = task
        self.data = as_read(task.data, vocabulary)
        self.vocabulary = vocabulary
        self.training: LanguageTraining | None = training

    def model(self) -> Generator:
        """A new model for this vocabulary."""
        size = len(self.vocabulary)
        return self.task.model_config.build(size, rarity(self.training.text, size) if self.training else None)

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.vocabulary)

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Writer:
        """The trained model: `predict(text)` continues a text; also `score(text)`, `next(text, k)`."""
        assert isinstance(model, Generator)
        data, decoding = self.data, self.task.decoding.with_options(options)
        mixture = self._mixture(model, decoding) if decoding.mixture or decoding.cache else None
        return Writer(
            model,
            self.vocabulary,
            decoding,
            batching=data.batches,
            length=data.length,
            mixed=mixture,
            scores=bool(options.get("scores")),
        )

    def writer(self, model: nn.Module) -> Writer:
        return self.predictor(model)

    def _mixture(self, model: Generator, decoding: Writing) -> Mixed:
        data, size, given = self.data, len(self.vocabulary), decoding.ngram_weight
        ngrams = None
        if decoding.mixture:
            ngrams = counted_for(data, decoding, read(data, self.vocabulary, "train"), size)
        if given is not None and not decoding.tuned:
            return Mixed(ngrams, given)
        valid = read(data, self.vocabulary, "valid")
        weights = parts_of(model, valid, data, decoding, ngrams).tuned(given)
        cache = Cache(decoding.cache, weights.sharpness, weights.cache) if decoding.cache else None
        return Mixed(ngrams, weights.ngram, cache)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> ProseEvaluation:
        """Perplexity, nats per word and bits per character, next to an n-gram model of the training text."""
        assert isinstance(model, Generator)
        source = self.data
        text = source.open(split) if data is None else PlainText(data)
        train = None
        with suppress(DataError):
            train = read(source, self.vocabulary, "train")
        return evaluate(
            model,
            read_text(text, self.vocabulary),
            title=source.describe(split) if data is None else str(data),
            data=source,
            decoding=self.task.decoding,
            size=len(self.vocabulary),
            train=train,
            valid=None
            if data is None and split == "valid"
            else lambda: read(source, self.vocabulary, "valid"),
        )

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.language.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> Exported:
        from weft.tasks.language.exported import exported

        return exported(self, model)
