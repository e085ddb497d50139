"""Translation: translates a sequence into another language.

Read next: ../seq2seq/base.py, which reads and trains; ../seq2seq/translator.py, which searches.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from weft.data.check import check_pairs
from weft.data.guess import holds_pairs
from weft.data.report import Report
from weft.errors import DataError
from weft.metrics.bleu import Bleu, Chrf
from weft.models import Generator
from weft.tasks.evaluation import Validation
from weft.tasks.predictor import Predictor
from weft.tasks.seq2seq.base import PairPipeline, Pairs, PairTask
from weft.tasks.seq2seq.documents import SentenceTranslator
from weft.tasks.seq2seq.evaluation import BETTER, PairEvaluation, evaluate
from weft.tasks.seq2seq.sections import TranslationEvaluationSettings, TranslationSettings
from weft.tasks.task import PredictionSettings, Scoring


class TranslatePipeline(PairPipeline):
    """The vocabularies of a translator."""

    def directions(self) -> Sequence[tuple[str, str]]:
        return [(self.task.data.source, self.task.data.target)]

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Predictor[str]:
        """The trained model; with the setting `split_sentences` for lines of several sentences."""
        asked = TranslationSettings.of(settings)
        found = self.searcher(model, asked)
        return SentenceTranslator(found, *self.directions()[0]) if asked.split_sentences else found

    def scores(self, model: Generator, examples: Pairs, asked: Scoring) -> PairEvaluation:
        train = None
        with suppress(DataError):  # no baseline without the training data
            train = self.task.data.complete("train")
        found, title = self.searcher(model, asked.settings), self.title(asked, examples)
        return evaluate(found, *examples, title=title, train=train, lowercase=asked.settings.lowercase)


class TranslateTask(PairTask):
    """Trains a translator on parallel text."""

    prediction_settings: ClassVar = TranslationSettings
    evaluation_settings: ClassVar = TranslationEvaluationSettings
    check_options: ClassVar[Sequence[str]] = ("source", "target")
    knows = staticmethod(holds_pairs)
    note: ClassVar[str] = (
        "BLEU and chrF are sacrebleu's on detokenised greedy output, perplexity is per token."
    )
    evaluation: ClassVar = PairEvaluation
    suffixes: ClassVar[Sequence[str]] = ("*",)
    better: ClassVar = BETTER

    def about(self) -> str:
        return f"{self.data.source} to {self.data.target}, on {self.data.origin}"

    def open(self, run: Path) -> TranslatePipeline:
        return TranslatePipeline(self, self.vocabularies(run))

    def with_scores(self, found: Validation) -> Validation:
        return found.with_metrics([Bleu(), Chrf()])

    @classmethod
    def check(cls, files: Sequence[Path], **form: Any) -> Report:
        return check_pairs(*files, **form)
