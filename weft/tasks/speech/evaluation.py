"""Scores of transcripts: error rates with counts and intervals, next to the baseline."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.bylength import LengthRow, by_length
from weft.metrics.cer import Cer
from weft.metrics.compared import ComparedOutputs, of_lines
from weft.metrics.forms import ScoresInForm, scores_in_form
from weft.metrics.scored import ScoreWithBaselines, scored
from weft.metrics.wer import Wer
from weft.models import Generator
from weft.tasks.evaluation import Evaluation, mean_loss
from weft.tasks.speech.data import Recording, collate_recordings
from weft.tasks.speech.predictor import Transcriber, spelled
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGES = (2, 4, 8, 16)  # words per recording
ROWS = 32  # recordings per step while a loss is computed


@dataclass(frozen=True, kw_only=True)
class SpeechEvaluation(Evaluation):
    """Transcripts, and their scores."""

    title: str
    outputs: list[str]
    references: list[str]
    lengths: list[LengthRow]  # WER by words said
    scores: list[ScoreWithBaselines]  # WER, CER, accuracy
    counts: list[int]  # substitutions, deletions, insertions, words of the references
    hours: float  # of sound
    seconds: float  # of the search
    compared: ComparedOutputs | None
    forms: ScoresInForm | None = None  # if references are in another Unicode form than outputs
    shows: ClassVar[str] = "WER by words said"
    compares: ClassVar[bool] = True
    length: ClassVar[str] = "words said"

    def details(self) -> list[str]:
        """Errors by kind, and the speed."""
        changed, out, put, words = self.counts
        minutes, speed = 60 * self.hours, 3600 * self.hours / max(self.seconds, 1e-9)
        return [
            *([] if self.forms is None else [self.forms.line()]),
            f"  {plural(changed, 'word')} substituted, {out:,} deleted, {put:,} inserted, of {words:,}",
            f"  {minutes:.1f} minutes of sound in {self.seconds:.1f} s, {speed:.0f} times as fast",
        ]

    def facts(self) -> dict[str, Any]:
        """Errors by kind, and the scores in one Unicode form."""
        counts = dict(zip(("substitutions", "deletions", "insertions", "words"), self.counts, strict=True))
        forms = {} if self.forms is None else {"in_one_form": self.forms._asdict()}
        return {"counts": counts, "seconds": self.seconds, **forms}

    def figure(self, name: str) -> "Figure":
        """WER by length as bars with intervals; empty bins at the long end are left out."""
        from weft.figures.quality import quality_by_length

        rows = list(self.lengths)
        while rows[-1].score is None:
            rows.pop()
        return quality_by_length({name: rows}, title=f"{name}: {self.title}", x=self.length)


def evaluate(
    transcriber: Transcriber, recordings: Sequence[Recording], *, title: str, answer: str
) -> SpeechEvaluation:
    """Transcribe and score.

    Args:
        transcriber: with the trained model.
        recordings: with their transcripts.
        title: names the data.
        answer: the most frequent transcript of the training list.
    """
    begun = time.perf_counter()
    outputs = [best[0].text for best in transcriber.transcribe(one.frames for one in recordings)]
    seconds = time.perf_counter() - begun
    references = [spelled(transcriber, one.text) for one in recordings]
    lowest = {f"the most frequent answer of the training list ({answer!r})": [answer] * len(references)}
    found = [scored(metric, outputs, references, baselines=lowest) for metric in (Wer(), Cer(), Accuracy())]
    counts = Wer().statistics(outputs, references).sum(0)
    frames = sum(len(one.frames) for one in recordings)
    return SpeechEvaluation(
        title=f"{title}, {plural(len(recordings), 'recording')}, {transcriber.decoding.describe()}",
        outputs=outputs,
        references=references,
        scores=found,
        lengths=by_length(Wer(), outputs, references, references, edges=EDGES),
        counts=[int(count) for count in counts],
        hours=frames * transcriber.sound.hop / 3600,
        seconds=seconds,
        compared=of_lines(outputs, references, None, lowest),
        forms=scores_in_form(
            {"WER": Wer(), "CER": Cer()}, outputs, references, form=transcriber.vocabulary.form
        ),
    )


def loss_of_recordings(model: Generator, frames: Sequence[np.ndarray], targets: Sequence[list[int]]) -> float:
    """Loss in nats per target token, with <eos>, without label smoothing; the model is in evaluation mode."""
    order = sorted(range(len(frames)), key=lambda n: len(frames[n]))
    parts = (order[at : at + ROWS] for at in range(0, len(order), ROWS))
    return mean_loss(
        model, (collate_recordings([frames[n] for n in part], [targets[n] for n in part]) for part in parts)
    )
