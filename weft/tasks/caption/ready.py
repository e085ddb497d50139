"""Captions, made ready: vocabulary and shape of a run, and the pictures while it is trained.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.batching import ShuffledBatches
from weft.errors import DataError
from weft.metrics.bleu_n import bleu_n
from weft.metrics.cider import cider_d
from weft.metrics.compared import ComparedOutputs
from weft.models import Generator
from weft.tasks.caption.evaluation import CaptionEvaluation, evaluate, exact
from weft.tasks.caption.predictor import Captioner, captioned
from weft.tasks.exported import ModelExport
from weft.tasks.inspection import Examples, Inspection
from weft.tasks.pictures.data import Captions
from weft.tasks.pictures.model import places_of
from weft.tasks.pictures.pictures import parts
from weft.tasks.seq2seq.batch import PairBatch
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.pairs import joined, pieces
from weft.tasks.seq2seq.scoring import GivenScores, score_file
from weft.tasks.task import Pipeline, Split, Training, named_rows
from weft.tasks.validation import Sample, Validation, mean_loss, samples_of
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.caption.task import Caption


class CaptionTraining(Training):
    """The training pictures with their captions.

    Args:
        task: the recipe.
        vocabulary: of the captions.
        train, valid: pictures of one shape.

    Attributes:
        count: number of training captions.
        cut: how many of them are cut to data.max_length.
    """

    def __init__(self, task: "Caption", vocabulary: Vocabulary, train: Captions, valid: Captions) -> None:
        self._data = task.data
        self._vocabulary = vocabulary
        self._train = train
        self._valid = valid
        self._shape = train.pixels.shape[1:]
        self._places = places_of(task.model_config.front, self._shape)
        longest = task.data.max_length
        whole = [
            (number, vocabulary.encode(caption))
            for number, captions in enumerate(train.captions)
            for caption in captions
        ]
        self.count = len(whole)
        self.cut = sum(len(tokens) > longest for _, tokens in whole)
        self._pairs = [(number, tokens[:longest]) for number, tokens in whole]

    def plan(self, seed: int) -> ShuffledBatches:
        """Batches of captions in a new order each epoch."""
        return ShuffledBatches(len(self._pairs), self._data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        chosen = [self._pairs[int(number)] for number in numbers]
        pixels = self._train.pixels[[number for number, _ in chosen]]
        return captioned(pixels, [row for _, row in chosen], self._places)

    def validate(self, model: nn.Module) -> Validation:
        """Loss, and scores of greedy captions."""
        assert isinstance(model, Generator)
        texts, references = self._valid, self._valid.captions
        rows = [self._vocabulary.encode(captions[0]) for captions in references]
        every = parts(len(references), self._data.batch_rows)
        loss = mean_loss(model, (captioned(texts.pixels[n], rows[n], self._places) for n in every))
        greedy = Captioner(model, self._vocabulary, Decoding(search="greedy"), self._shape, self._data)
        outputs = [best[0].text for best in greedy.captions(texts.pixels)]
        scores = {
            "loss": loss,
            "exact": exact(outputs, references).value,
            "bleu4": bleu_n(outputs, references)[3].value,
            "cider": cider_d(outputs, references).value,
        }
        shown = samples_of(len(outputs))
        samples = [Sample(texts.names[n], references[n][0], outputs[n]) for n in shown]
        return Validation(scores, samples, [ComparedOutputs(outputs, references)])


class CaptionPipeline(Pipeline):
    """Vocabulary and shape of a run.

    Args:
        task: the recipe.
        vocabulary: of the captions.
        shape: of a picture.
        training: the pictures; None unless prepared for training.
    """

    task: "Caption"

    def __init__(
        self,
        task: "Caption",
        vocabulary: Vocabulary,
        shape: tuple[int, ...],
        training: CaptionTraining | None = None,
    ) -> None:
        self.task = task
        self.vocabulary = vocabulary
        self.shape = shape
        self.training = training

    def model(self) -> Generator:
        return self.task.model_config.build(self.shape, len(self.vocabulary))

    def rows(self) -> Mapping[str, Sequence[str]]:
        return named_rows(self.vocabulary)

    def writes(self) -> Vocabulary:
        return self.vocabulary

    def common(self) -> Mapping[str, Any]:
        return {"vocabulary": pieces(self.vocabulary), "shape of pictures": self.shape}

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Captioner:
        """The trained model; `predict(file or array)` returns a caption."""
        assert isinstance(model, Generator)
        return Captioner(
            model,
            self.vocabulary,
            self.task.decoding.with_options(options),
            self.shape,
            self.task.data,
            others=[joined(member, self) for member in options.get("ensemble", ())],
            scores=bool(options.get("scores")),
            coco=bool(options.get("coco")),
        )

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> CaptionEvaluation | GivenScores:
        """BLEU-1 to 4, ROUGE-L, CIDEr-D and exact captions; see Pipeline.evaluate. `data` is a captions file.

        With the option `score`, a file, the result is the log-probability of each of its lines instead.
        """
        assert isinstance(model, Generator)
        own = self.task.data
        found = own.load(split) if data is None else own.read(own.at(data))
        if found.pixels.shape[1:] != self.shape:
            raise DataError(
                f"{data or split}: expected pictures of {self.shape}, as the model was trained on, "
                f"got {found.pixels.shape[1:]}; rescale them"
            )
        if "score" in options:
            places = places_of(self.task.model_config.front, self.shape)
            return score_file(
                model,
                len(found.pixels),
                self.vocabulary.encode_batch,
                lambda numbers, rows: captioned(found.pixels[numbers], rows, places),
                options,
            )
        train: list[list[str]] = []
        with suppress(DataError):
            train = (
                own.load("train").captions if own.generated else [one.captions for one in own.find("train")]
            )
        title = own.describe(split) if data is None else data.name
        return evaluate(self.predictor(model, options), found, title=title, train=train)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspection:
        from weft.tasks.caption.inspected import inspected

        return inspected(self, model, text, examples, options)

    def exported(self, model: nn.Module) -> ModelExport:
        from weft.tasks.caption.exported import exported

        return exported(self, model)
