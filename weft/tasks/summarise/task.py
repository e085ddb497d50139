"""Summarisation: shortens a text.

Read next: ../seq2seq/base.py, which reads and trains; evaluation.py, the scores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.data.check import check_pairs
from weft.data.report import Report
from weft.data.tables import header_of, is_table
from weft.errors import ConfigError
from weft.metrics.rouge_n import Rouge
from weft.models import Generator
from weft.tasks.evaluation import Validation
from weft.tasks.seq2seq.base import PairPipeline, Pairs, PairTask
from weft.tasks.seq2seq.data import PairData
from weft.tasks.seq2seq.decoding import Decoding, TextEvaluationSettings
from weft.tasks.seq2seq.model import PairModel
from weft.tasks.summarise.evaluation import KINDS, SummaryEvaluation, evaluate
from weft.tasks.task import EvaluationSettings, Split


class SummarisePipeline(PairPipeline):
    """The vocabularies of a summariser."""

    def score(
        self,
        model: Generator,
        examples: Pairs,
        split: Split,
        data: Path | None,
        settings: EvaluationSettings,
    ) -> SummaryEvaluation:
        """ROUGE, next to the lead sentence and the first words."""
        found = self.searcher(model, TextEvaluationSettings.of(settings))
        return evaluate(found, *examples, title=self.title(split, data, examples))


class SummariseTask(PairTask):
    """Trains a summariser on texts and summaries, from two columns of a table or two aligned files."""

    evaluation: ClassVar = SummaryEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "perplexity": "lower",
        "rouge_1": "higher",
        "rouge_2": "higher",
        "rouge_l": "higher",
    }
    check_options: ClassVar[Sequence[str]] = ("source", "target")
    note: ClassVar[str] = "ROUGE is F1 of greedy output, in lower case, without stemming."

    def __init__(self, *, data: PairData, model: PairModel, decoding: Decoding) -> None:
        if data.augment.concatenate:
            raise ConfigError(
                "data.augment.concatenate: two joined summaries do not summarise two texts; leave it out"
            )
        super().__init__(data=data, model=model, decoding=decoding)

    def about(self) -> str:
        return (
            f"summaries ({self.data.source} to {self.data.target}), on {self.data.corpus or self.data.train}"
        )

    def open(self, run: Path) -> SummarisePipeline:
        return SummarisePipeline(self, self.vocabularies(run))

    def with_scores(self, found: Validation) -> Validation:
        (compared,) = found.compared
        scores = {f"rouge_{kind.lower()}": compared.value(Rouge(kind=kind)) for kind in KINDS}
        return found._replace(scores=found.scores | scores)

    @classmethod
    def check(cls, files: Sequence[Path], **form: Any) -> Report:
        """Check pairs as for translation, but in one language and of unequal length."""
        if not form and {"text", "summary"} <= set(header_of(files[0]) if is_table(files[0]) else ()):
            form = {"source": "text", "target": "summary"}
        report = check_pairs(*files, **form)
        left = ("ratio", "swapped")
        words = {
            **report.words,
            "empty": "texts without a summary, or summaries without a text",
            "same": "summaries equal to their text",
        }
        return report._replace(
            findings=[one for one in report.findings if one.kind not in left],
            counts={kind: count for kind, count in report.counts.items() if kind not in left},
            words=words,
        )
