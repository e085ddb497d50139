"""Summarisation: shortens a text.

Read next: ../seq2seq/base.py, which reads and trains.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.data.check import check_pairs
from weft.data.report import Report
from weft.data.tables import header_of, is_table
from weft.errors import ConfigError
from weft.metrics.forms import scores_in_form
from weft.metrics.rouge_n import Rouge
from weft.metrics.scored import of_lines, scored
from weft.models import Generator
from weft.search.offered import Decoding
from weft.tasks.evaluation import Validation
from weft.tasks.seq2seq.base import PairPipeline, Pairs, PairTask
from weft.tasks.seq2seq.evaluation import WrittenEvaluation, written_pairs
from weft.tasks.seq2seq.sections import PairData, PairModel
from weft.tasks.seq2seq.translator import Translator
from weft.tasks.task import Scoring
from weft.words import unit_of, units

KINDS: tuple[Literal["1", "2", "L"], ...] = ("1", "2", "L")
_END = re.compile(r"(?<=[.!?।؟።])\s+|(?<=[。！？။។])")


def lead_sentence(text: str) -> str:
    """Everything up to the first end of a sentence, the baseline of Nallapati et al. 2016."""
    return _END.split(text.strip(), maxsplit=1)[0]


def lead_words(text: str, count: int) -> str:
    """The first words, or signs of a script without spaces; callers pass the mean length of summaries."""
    return " ".join(units(text)[:count])


@dataclass(frozen=True, kw_only=True)
class SummaryEvaluation(WrittenEvaluation):
    """Summaries, and their scores: ROUGE-1, -2, -L."""

    words: tuple[
        float, float, float
    ]  # mean length of sources, references and outputs, in words or characters
    copied: float  # share of the outputs' words, or characters, that occur in their source
    unit: str = "word"

    def details(self) -> list[str]:
        rate = (len(self.outputs) - self.left_out) / max(self.seconds, 1e-9)
        return [
            f"  {self.unit}s: {self.words[0]:.0f} a source, {self.words[1]:.1f} a reference, "
            f"{self.words[2]:.1f} an output, of which {100 * self.copied:.0f} % occur in the source",
            f"  {rate:.0f} summaries/s, {self.seconds:.1f} s",
        ]

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "copied": self.copied}


def evaluate(
    translator: Translator, sources: Sequence[str], references: Sequence[str], *, title: str
) -> SummaryEvaluation:
    """Summarise and score; pairs without text on one side are left out, as in training, and counted."""
    pairs = written_pairs(translator, sources, references, title, "text")
    sources, references, outputs = pairs.sources, pairs.references, pairs.outputs
    usual, unit = round(_mean_length(references)), unit_of(references)
    lowest = {
        "the lead sentence": [lead_sentence(source) for source in sources],
        f"the first {usual} {unit}s": [lead_words(source, usual) for source in sources],
    }
    metrics = {f"ROUGE-{kind}": Rouge(kind=kind) for kind in KINDS}
    return SummaryEvaluation(
        title=pairs.title,
        outputs=pairs.lines,
        left_out=pairs.left_out,
        scores=[
            scored(metric, outputs, references, baselines=lowest).renamed(name)
            for name, metric in metrics.items()
        ],
        wrong=pairs.wrong,
        words=(_mean_length(sources), _mean_length(references), _mean_length(outputs)),
        copied=_copied(outputs, sources),
        seconds=pairs.seconds,
        compared=[of_lines(outputs, references, sources, lowest)],
        forms=scores_in_form(metrics, outputs, references, form=translator.target.form),
        unit=unit,
    )


def _mean_length(lines: Sequence[str]) -> float:
    return sum(len(units(line)) for line in lines) / len(lines)


def _copied(outputs: Sequence[str], sources: Sequence[str]) -> float:
    found = total = 0
    for output, source in zip(outputs, sources, strict=True):
        there, words = set(units(source)), units(output)
        found += sum(word in there for word in words)
        total += len(words)
    return found / max(1, total)


class SummarisePipeline(PairPipeline):
    """The vocabularies of a summariser."""

    def scores(self, model: Generator, examples: Pairs, asked: Scoring) -> SummaryEvaluation:
        return evaluate(self.searcher(model, asked.settings), *examples, title=self.title(asked, examples))


class SummariseTask(PairTask):
    """Trains a summariser on texts and summaries, from two columns of a table or two aligned files."""

    evaluation: ClassVar = SummaryEvaluation
    better: ClassVar = {
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
        return f"summaries ({self.data.source} to {self.data.target}), on {self.data.origin}"

    def open(self, run: Path) -> SummarisePipeline:
        return SummarisePipeline(self, self.vocabularies(run))

    def with_scores(self, found: Validation) -> Validation:
        (compared,) = found.compared
        outputs = compared.made()
        scores = {f"rouge_{kind.lower()}": outputs.value(Rouge(kind=kind)) for kind in KINDS}
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
