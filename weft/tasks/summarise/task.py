"""M14, summarisation: a long text becomes a short one. The translate task reads, trains and searches.

Read next: ../translate/task.py; evaluation.py, the scores and baselines.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from torch import nn

from weft.data.batching import Batches
from weft.data.mixture import Mixture
from weft.data.report import Report
from weft.metrics.rouge_n import Rouge
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.ready import Ready, Split
from weft.tasks.shared.writing.batch import PairBatch
from weft.tasks.shared.writing.data import PairData
from weft.tasks.shared.writing.decoding import EVALUATED, Decoding
from weft.tasks.shared.writing.model import PairModel
from weft.tasks.shared.writing.reading import SourceReader
from weft.tasks.shared.writing.scoring import GivenScores
from weft.tasks.shared.writing.translator import Translator
from weft.tasks.summarise.evaluation import KINDS, SummaryEvaluation, evaluate
from weft.tasks.task import Progress
from weft.tasks.translate.task import Translate
from weft.tasks.validation import Validation
from weft.tasks.whole import Answer, Whole
from weft.text.vocabulary import Vocabulary


class Summarise(Whole):
    """Texts and their summaries, two columns of a TSV file or two files side by side, to a summariser.

    Args:
        data: where the pairs come from; the source is the text, the target its summary.
        model: which encoder and decoder.
        decoding: how summaries are searched once the model is trained; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": PairData, "model": PairModel, "decoding": Decoding}
    evaluation: ClassVar = SummaryEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "perplexity": "lower",
        "rouge_1": "higher",
        "rouge_2": "higher",
        "rouge_l": "higher",
    }
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": Translate.options["predict"],
        "evaluate": EVALUATED,
    }
    note: ClassVar[str] = "ROUGE is F1 of greedy output, in small letters, without stemming."

    def __init__(self, *, data: PairData, model: PairModel, decoding: Decoding) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self._pairs = Translate(data=data, model=model, decoding=decoding)

    def about(self) -> str:
        """The corpus."""
        return (
            f"summaries ({self.data.source} to {self.data.target}), on {self.data.corpus or self.data.train}"
        )

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self._pairs.has(split)

    @property
    def source(self) -> Vocabulary:
        """The vocabulary of the texts; after `prepare` or `open`."""
        return self._pairs.source

    @property
    def target(self) -> Vocabulary:
        """The vocabulary of the summaries."""
        return self._pairs.target

    @property
    def reading(self) -> SourceReader:
        """How texts are read."""
        return self._pairs.reading

    def check_ready(self) -> None:
        """See Translate.check_ready."""
        self._pairs.check_ready()

    def rehearse(self) -> Loss:
        """See Translate.rehearse."""
        return self._pairs.rehearse()

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """See Translate.prepare."""
        self._pairs.prepare(run, progress)
        return self

    def open(self, run: Path) -> Ready:
        """See Translate.open."""
        self._pairs.open(run)
        return self

    def model(self) -> Generator:
        """See Translate.model."""
        return self._pairs.model()

    def writes(self) -> Vocabulary:
        """See Task.writes."""
        return self._pairs.target

    def common(self) -> Mapping[str, Any]:
        """See Task.common."""
        return self._pairs.common()

    def plan(self, seed: int) -> Batches | Mixture:
        """See Translate.plan."""
        return self._pairs.plan(seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """See Translate.collate."""
        return self._pairs.collate(numbers)

    def validate(self, model: nn.Module) -> Validation:
        """Loss and perplexity over all validation pairs; ROUGE of greedy summaries."""
        found = self._pairs.tried(model)
        (compared,) = found.compared
        scores = {f"rouge_{kind.lower()}": compared.value(Rouge(kind=kind)) for kind in KINDS}
        return found._replace(scores=found.scores | scores)

    def predictor(self, model: nn.Module, decoding: Decoding | None = None) -> Translator:
        """The trained model at work: `predict(text)` answers with its summary."""
        return self._pairs.predictor(model, decoding)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A summary a line, or the n best ones, each on its own line."""
        return self._pairs.answers(model, source, options)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> SummaryEvaluation | GivenScores:
        """ROUGE beside the lead sentence and the first words; see Task.evaluate.

        With the option `score`, a file, nothing is written: the log-probability of each of its lines.
        """
        if "score" in options:
            scored = self._pairs.evaluate(model, split=split, data=data, options=options)
            assert isinstance(scored, GivenScores)
            return scored
        pairs = list(self.data.open(split) if data is None else self.data.at(data))
        decoding = self.decoding.asked(options)
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return evaluate(
            self._pairs.predictor(model, decoding, options.get("ensemble", ())),
            sources,
            references,
            title=self._pairs.title(split, data, sources, references),
        )

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Pairs as of a translation, but of one language and of unequal length."""
        report = Translate.check(files)
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
