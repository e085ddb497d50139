"""Captioning: describes a picture in a sentence; each word attends to the picture.

Read next: ../pictures/data.py; predictor.py; ../seq2seq/base.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from weft.data.batching import ShuffledBatches
from weft.data.images import CAPTIONED, holds_classes
from weft.data.listed import first_texts
from weft.errors import DataError
from weft.metrics.captions import bleu_n, cider_d
from weft.metrics.scored import ComparedOutputs
from weft.models import Generator
from weft.search.offered import Decoding
from weft.tasks.caption.predictor import (
    Captioner,
    CaptionEvaluation,
    captioned,
    evaluate,
    exact,
    export_captioner,
    inspect_caption,
)
from weft.tasks.evaluation import Sample, Validation, mean_loss, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.pictures.data import (
    CHECK_OPTIONS,
    SIDE,
    CaptionData,
    CaptionModel,
    Captions,
    Pictures,
    check_captions,
    places_of,
    read_pictures,
)
from weft.tasks.pictures.pictures import parts, read_shape, write_shape
from weft.tasks.seq2seq.base import Seq2SeqPipeline, Seq2SeqTask
from weft.tasks.seq2seq.encoding import PairBatch
from weft.tasks.seq2seq.evaluation import GivenScores, score_file
from weft.tasks.seq2seq.sections import DecodingSettings, GenerationEvaluationSettings, GenerationSettings
from weft.tasks.task import (
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Training,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class CaptionSettings(GenerationSettings):
    """What the user asks of captions.

    Args:
        coco: write them as COCO's results.
    """

    coco: bool = False


class CaptionTraining(Training):
    """The training pictures with their captions, of which some are cut to data.max_length."""

    def __init__(self, task: "CaptionTask", vocabulary: Vocabulary, train: Captions, valid: Captions) -> None:
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
        return ShuffledBatches(len(self._pairs), self._data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        chosen = [self._pairs[int(number)] for number in numbers]
        pixels = self._train.pixels[[number for number, _ in chosen]]
        return captioned(pixels, [row for _, row in chosen], self._places)

    def validate(self, model: Generator) -> Validation:
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


@dataclass(eq=False)
class CaptionPipeline(Seq2SeqPipeline[Captions]):
    """Vocabulary and shape of a run."""

    task: "CaptionTask"
    shape: tuple[int, ...]

    def model(self) -> Generator:
        return self.task.model_config.build(self.shape, len(self.target))

    def common(self) -> Mapping[str, object]:
        return {**super().common(), "shape of pictures": self.shape}

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Captioner:
        """The trained model; `predict(file or array)` returns a caption."""
        asked = DecodingSettings.of(settings)
        coco = isinstance(asked, CaptionSettings) and asked.coco
        own, how = self.task.data, self.searching(asked)
        return Captioner(model, self.target, shape=self.shape, data=own, coco=coco, **how)

    def examples_of(self, split: Split, data: Path | None) -> Captions:
        return self.task.data.pictures_of(split, data, self.shape)

    def scores(self, model: Generator, examples: Captions, asked: Scoring) -> CaptionEvaluation:
        own = self.task.data
        train: list[list[str]] = []
        with suppress(DataError):
            train = (
                own.load("train").captions if own.generated else [one.captions for one in own.find("train")]
            )
        captioner = self.predictor(model, asked.settings)
        return evaluate(captioner, examples, title=asked.title(own), train=train)

    def given_scores(
        self, model: Generator, examples: Captions, settings: GenerationEvaluationSettings
    ) -> GivenScores:
        places = places_of(self.task.model_config.front, self.shape)
        return score_file(
            model,
            len(examples.pixels),
            self.target.encode_batch,
            lambda numbers, rows: captioned(examples.pixels[numbers], rows, places),
            settings,
        )

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        """The text is the name of a picture."""
        return inspect_caption(self.predictor(model), settings.text)

    def model_export(self, model: Generator) -> ModelExport:
        return export_captioner(self.predictor(model))


class CaptionTask(Seq2SeqTask):
    """Pictures to captions."""

    sections: ClassVar = {"data": CaptionData, "model": CaptionModel, "decoding": Decoding}
    prediction_settings: ClassVar = CaptionSettings
    evaluation_settings: ClassVar = GenerationEvaluationSettings
    columns: ClassVar[Sequence[str]] = ("image", "caption")
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json")
    check = staticmethod(check_captions)
    note: ClassVar[str] = (
        "Exact is the share of captions that match a reference word for word; BLEU-4 and CIDEr-D are "
        "computed as COCO's evaluation does, on greedy output in lower case without punctuation."
    )
    evaluation: ClassVar = CaptionEvaluation
    check_options: ClassVar = CHECK_OPTIONS
    better: ClassVar = {"loss": "lower", "exact": "higher", "bleu4": "higher", "cider": "higher"}

    data: CaptionData
    model_config: CaptionModel

    def about(self) -> str:
        return f"captions of {self.data.describe('train')}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        files = self.data.find("valid")
        return PredictExample("", [str(files[0].path)]) if files else None

    def small_model(self) -> Generator:
        return self.model_config.build(self._likely(), 11)

    def small_batch(self) -> PairBatch:
        shape = self._likely()
        places = places_of(self.model_config.front, shape)
        return captioned(np.zeros((2, *shape), np.float32), [[5, 6, 7], [8]], places)

    def read(self, progress: Progress) -> Pictures:
        return read_pictures(self.data, progress)

    def learn(self, corpus: Pictures, run: Path, progress: Progress) -> None:
        write_shape(run, corpus.train.pixels.shape[1:])
        texts = [caption for captions in corpus.train.captions for caption in captions]
        self.data.vocabulary.learn(texts).save(self.saved(run))

    def open(self, run: Path) -> CaptionPipeline:
        return CaptionPipeline(self, load_vocabulary(self.saved(run)), read_shape(run)[0])

    def training(
        self, corpus: Pictures, pipeline: CaptionPipeline, run: Path, progress: Progress
    ) -> CaptionTraining:
        training = CaptionTraining(self, pipeline.target, *corpus)
        progress(
            f"training captions: {training.count:,} of {len(corpus.train.names):,} pictures "
            f"({training.cut:,} cut at {self.data.max_length} tokens), {len(pipeline.target):,} tokens",
            0,
            0,
        )
        return training

    @classmethod
    def knows(cls, file: Path) -> bool:
        """A list of pictures that has no classes."""
        return bool(first_texts(file, CAPTIONED)) and not holds_classes(file)

    def _likely(self) -> tuple[int, ...]:
        """The shape of pictures before any is read."""
        side = self.data.size or SIDE
        return (side, side, 3)
