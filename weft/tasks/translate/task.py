"""Translation: translates a sequence into another language.

Read next: ../seq2seq/pairs.py, which reads, trains and searches; ready.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from weft.data.check import check
from weft.data.report import Report
from weft.metrics.bleu import Bleu
from weft.metrics.chrf import Chrf
from weft.tasks.seq2seq.decoding import ALIGNED, EVALUATED
from weft.tasks.seq2seq.evaluation import BETTER, PairEvaluation
from weft.tasks.seq2seq.pairs import PairTask, PairTraining
from weft.tasks.seq2seq.reading import Vocabularies
from weft.tasks.translate.ready import TranslatePipeline
from weft.tasks.validation import Validation


class Translate(PairTask):
    """Trains a translator on parallel text."""

    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*ALIGNED, "split_sentences", "document"),
        "evaluate": (*EVALUATED, "lowercase", "glossary"),
    }
    note: ClassVar[str] = (
        "BLEU and chrF are sacrebleu's on detokenised greedy output, perplexity is per token."
    )
    evaluation: ClassVar = PairEvaluation
    suffixes: ClassVar[Sequence[str]] = ("*",)
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = BETTER

    def about(self) -> str:
        """The languages and the corpus."""
        return f"{self.data.source} to {self.data.target}, on {self.data.corpus or self.data.train}"

    def pipeline(self, known: Vocabularies, training: PairTraining | None) -> TranslatePipeline:
        return TranslatePipeline(self, known, training)

    def scored(self, found: Validation) -> Validation:
        return found.with_metrics([Bleu(), Chrf()])

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check parallel text; see weft/data/check.py."""
        return check(*files)
