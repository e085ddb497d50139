"""Scores of summaries: ROUGE with intervals, next to the lead, which requires no model."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from weft.metrics.compared import ComparedOutputs, of_lines
from weft.metrics.forms import ScoresInForm, scores_in_form
from weft.metrics.rouge_n import Rouge
from weft.metrics.scored import ScoreWithBaselines, scored
from weft.tasks.evaluation import Evaluation, unanswered
from weft.tasks.seq2seq.evaluation import aligned, counted, scorable, written
from weft.tasks.seq2seq.translator import Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: tuple[Literal["1", "2", "L"], ...] = ("1", "2", "L")
_END = re.compile(r"(?<=[.!?])\s+")


def lead_sentence(text: str) -> str:
    """Everything up to the first end of a sentence, the baseline of Nallapati et al. 2016.

    Example:
        >>> lead_sentence("A game of war. It runs on 3.5 MB!")
        'A game of war.'
    """
    return _END.split(text.strip(), maxsplit=1)[0]


def lead_words(text: str, count: int) -> str:
    """The first words; callers pass the mean length of summaries.

    Example:
        >>> lead_words("A game of war.", 2)
        'A game'
    """
    return " ".join(text.split()[:count])


@dataclass(frozen=True, kw_only=True)
class SummaryEvaluation(Evaluation):
    """Summaries, and their scores."""

    title: str
    outputs: list[str]  # a line for each text of the data; empty if the pair is left out
    left_out: int  # pairs with an empty side, which no score counts
    scores: list[ScoreWithBaselines]  # ROUGE-1, -2, -L
    wrong: list[str]
    words: tuple[float, float, float]  # mean length of sources, references and outputs
    copied: float  # share of the outputs' words that occur in their source
    seconds: float
    compared: ComparedOutputs | None
    forms: ScoresInForm | None = None  # if references are in another Unicode form than outputs
    shows: ClassVar[str] = "scores, intervals and baselines"
    compares: ClassVar[bool] = True

    def details(self) -> list[str]:
        """Words of texts and summaries, and the speed."""
        rate = (len(self.outputs) - self.left_out) / max(self.seconds, 1e-9)
        forms = [] if self.forms is None else [self.forms.line()]
        return [
            *forms,
            f"  words: {self.words[0]:.0f} a source, {self.words[1]:.1f} a reference, {self.words[2]:.1f} an "
            f"output, of which {100 * self.copied:.0f} % occur in the source",
            f"  {rate:.0f} summaries/s, {self.seconds:.1f} s",
        ]

    def facts(self) -> dict[str, Any]:
        """Lengths and the copied share."""
        return {"seconds": self.seconds, "copied": self.copied, "left_out": self.left_out}

    def figure(self, name: str) -> "Figure":
        """The gain of each score over the baselines, a row for each."""
        from weft.figures.intervals import intervals

        return intervals(self.scores, title=f"{name}: {self.title}")


def evaluate(
    translator: Translator, sources: Sequence[str], references: Sequence[str], *, title: str
) -> SummaryEvaluation:
    """Summarise and score; pairs without text on one side are left out, as in training, and counted.

    Args:
        translator: with the trained model.
        sources, references: texts, a line for each.
        title: names the data.

    Raises:
        DataError: no pair has text on both sides.
    """
    kept = scorable(sources, references, title)
    count, left_out = len(sources), len(sources) - len(kept)
    sources, references = [sources[n] for n in kept], [references[n] for n in kept]
    begun = time.perf_counter()
    outputs, wrong = written(translator, sources, kept, title)
    seconds = time.perf_counter() - begun
    usual = round(sum(len(line.split()) for line in references) / len(references))
    lowest = {
        "the lead sentence": [lead_sentence(source) for source in sources],
        f"the first {usual} words": [lead_words(source, usual) for source in sources],
    }
    metrics = {f"ROUGE-{kind}": Rouge(kind=kind) for kind in KINDS}
    return SummaryEvaluation(
        title=f"{title}, {counted(len(kept), left_out, 'text')}, {translator.described}"
        f"{unanswered(wrong, 'scored as empty')}",
        outputs=aligned(outputs, kept, count),
        left_out=left_out,
        scores=[
            scored(metric, outputs, references, baselines=lowest).renamed(name)
            for name, metric in metrics.items()
        ],
        wrong=wrong,
        words=(_mean_words(sources), _mean_words(references), _mean_words(outputs)),
        copied=_copied(outputs, sources),
        seconds=seconds,
        compared=of_lines(outputs, references, sources, lowest),
        forms=scores_in_form(metrics, outputs, references, form=translator.target.form),
    )


def _mean_words(lines: Sequence[str]) -> float:
    return sum(len(line.split()) for line in lines) / len(lines)


def _copied(outputs: Sequence[str], sources: Sequence[str]) -> float:
    found = total = 0
    for output, source in zip(outputs, sources, strict=True):
        there = set(source.split())
        found += sum(word in there for word in output.split())
        total += len(output.split())
    return found / max(1, total)
