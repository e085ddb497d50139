"""A masked language model (BERT's first task): words predicted from the context on both sides.

Read next: model.py, predictor.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from weft.data.batching import NumberedEpochs
from weft.data.plain import PlainText, no_words
from weft.errors import within
from weft.metrics.scored import DeferredOutputs
from weft.nn.embed.contextual import PiecesInContext
from weft.nn.heads.head import Loss
from weft.setting_types import AtLeastOne
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.export import ModelExport
from weft.tasks.inspection import Inspection
from weft.tasks.masked.model import MaskedBatch, MaskedLanguageModel, MaskedModel, hide
from weft.tasks.masked.predictor import (
    MASK,
    GapEvaluation,
    GapFiller,
    evaluate,
    export_filler,
    inspect_gaps,
    score,
)
from weft.tasks.reused import ReusedEncoder, words_in_pieces
from weft.tasks.running_text.base import (
    Parts,
    ProseData,
    RunningTextPipeline,
    RunningTextTask,
    check_lines,
    line_batches,
)
from weft.tasks.space import Recipe
from weft.tasks.task import (
    ContextSource,
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Training,
    named_rows,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import EOS, SOS, Vocabulary


@dataclass(frozen=True, kw_only=True)
class GapSettings(ScoredSettings):
    """What the user asks of the pieces for a gap."""

    nbest: AtLeastOne = 1  # number of pieces of each gap


@dataclass(eq=False)
class MaskedTraining(Training):
    """The text of a training."""

    data: ProseData
    share: float
    vocabulary: Vocabulary
    train: list[list[int]]
    valid: list[list[int]]
    seed = 1  # of what is hidden; that of the plan

    def plan(self, seed: int) -> NumberedEpochs:
        """Lines of similar length; other tokens are hidden in every epoch."""
        self.seed = seed
        return NumberedEpochs(line_batches(self.data, self.train, seed), len(self.train))

    def collate(self, numbers: np.ndarray) -> MaskedBatch:
        """Training lines by number; a number beyond their count is a line in a later epoch."""
        lines = [self.train[int(number) % len(self.train)] for number in numbers]
        seed = [self.seed, int(numbers[0])]
        return hide(lines, len(self.vocabulary), share=self.share, seed=seed)

    def validate(self, model: MaskedLanguageModel) -> Validation:
        vocabulary = self.vocabulary
        found = score(model, self.valid, len(vocabulary))
        filler = GapFiller(model, vocabulary)
        samples = []
        for line in (self.valid[number] for number in samples_of(len(self.valid))):
            middle = len(line) // 2
            before, after = vocabulary.decode(line[:middle]), vocabulary.decode(line[middle + 1 :])
            gap = f"{before} {MASK} {after}".strip()
            # Tokens, not text: encoding the text again may give more tokens than the model has positions.
            tokens = [SOS, *line[:middle], len(vocabulary), *line[middle + 1 :], EOS]
            (answer,) = filler.answers([tokens])
            samples.append(Sample(gap, vocabulary.decode(line), answer.filled(1).text))
        pieces = DeferredOutputs("labels", lambda: found.pieces_of_lines(vocabulary))
        scores = {"loss": found.nats, "accuracy": found.right}
        return Validation(scores, samples, [found.nats_of_lines(), pieces])


@dataclass(eq=False)
class MaskedPipeline(RunningTextPipeline):
    """The vocabulary of a run."""

    task: "MaskedTask"
    vocabulary: Vocabulary

    def model(self) -> MaskedLanguageModel:
        return self.task.model_config.build(len(self.vocabulary))

    def rows(self) -> Mapping[str, Sequence[str]]:
        """See Pipeline.rows; the mask is the last one."""
        found = named_rows(self.vocabulary, more=[MASK])
        return {f"predictor.{name}": names for name, names in found.items()}

    def predictor(self, model: MaskedLanguageModel, settings: PredictionSettings | None = None) -> GapFiller:
        """The trained model: `predict("the [MASK] of a file")`, `fill(text, 5)`."""
        asked = GapSettings.of(settings)
        return GapFiller(model, self.vocabulary, count=asked.nbest, scores=asked.scores)

    def scores(
        self, model: MaskedLanguageModel, text: PlainText, title: str, asked: Scoring
    ) -> GapEvaluation:
        """Perplexity and accuracy of 15 % of the tokens, beside the frequencies of this very text."""
        source = self.task.data
        lines = read(self.vocabulary, text, source.length)
        unit = source.vocabulary.kind
        return evaluate(model, self.vocabulary, lines, title=title, unit=unit, length=source.length)

    def contextual(self, model: MaskedLanguageModel) -> ContextSource:
        embed, encoder = model.predictor.embed, model.predictor.encoder
        reads = partial(words_in_pieces, self.vocabulary, length=self.task.data.length)
        return ContextSource(reads, PiecesInContext(embed, self.task.model_config.size, encoder))

    def inspection(self, model: MaskedLanguageModel, settings: InspectionSettings) -> Inspection:
        return inspect_gaps(self.predictor(model), settings.input(), self.task.data.length, self.valid_texts)

    def model_export(self, model: MaskedLanguageModel) -> ModelExport:
        return export_filler(self.predictor(model), self.task.data.length, self.valid_texts)


def read(vocabulary: Vocabulary, source: PlainText, length: int) -> Parts[int]:
    """The lines of a text as tokens, at most `length` in a part."""
    found = Parts(vocabulary.encode_batch(list(source)), length)
    if not found.parts:
        raise no_words(source.path)
    return found


class MaskedTask(RunningTextTask[MaskedModel]):
    """A model that fills gaps, from lines of running text, cut at `length` tokens."""

    sections: ClassVar = {"data": ProseData, "model": MaskedModel}
    evaluation: ClassVar = GapEvaluation
    better: ClassVar = {"loss": "lower", "accuracy": "higher"}
    prediction_settings: ClassVar = GapSettings
    note: ClassVar[str] = (
        "loss (in nats) and accuracy are of 15 % of the validation tokens, always the same ones; as in "
        "training 80 % of them are masked, 10 % replaced, 10 % left as they are."
    )

    @classmethod
    def encoder_of(cls, recipe: Recipe) -> ReusedEncoder:
        model = recipe["model"]
        return ReusedEncoder(model["encoder"], model["size"], "both")

    def about(self) -> str:
        return f"masked {self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        found = super().predict_example(sources)
        return found if found and MASK in found.line else PredictExample(f"The {MASK} is nice today.")

    def check_ready(self) -> None:
        check_lines(self.data, words=False)
        with within("model"):
            self.rehearse()
        super().check_ready()

    def small_model(self) -> MaskedLanguageModel:
        return self.model_config.build(19)

    def rehearse(self) -> Loss:
        return self.small_model().loss(hide([[5, 6, 7], [8]], 19, share=0.5, seed=[1]))

    def training(
        self, corpus: None, pipeline: MaskedPipeline, run: Path, progress: Progress
    ) -> MaskedTraining:
        vocabulary = pipeline.vocabulary
        progress("reading the text", 0, None)
        train, valid = (
            read(vocabulary, self.data.open(s), self.data.length).parts for s in ("train", "valid")
        )
        progress(f"{sum(map(len, train)):,} tokens of {len(vocabulary):,} kinds", 0, 0)
        return MaskedTraining(self.data, self.model_config.share, vocabulary, train, valid)

    def open(self, run: Path) -> MaskedPipeline:
        return MaskedPipeline(self, load_vocabulary(self.saved(run)))
