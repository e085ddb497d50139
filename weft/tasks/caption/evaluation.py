"""Scores of captions: exact matches, BLEU-1 to 4, ROUGE-L, CIDEr-D, next to the most frequent caption."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.metrics.bleu import bleu_n
from weft.metrics.captions import SIGNATURE, words
from weft.metrics.cider import cider_d
from weft.metrics.compared import ComparedOutputs
from weft.metrics.forms import ScoresInForm, form_name, in_form, not_in_form
from weft.metrics.means import mean_of, ratio
from weft.metrics.rouge_n import rouge_l
from weft.metrics.scored import ScoreWithBaselines, fingerprint
from weft.tasks.caption.predictor import Captioner, coco
from weft.tasks.evaluation import Evaluation
from weft.tasks.pictures.data import Captions
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CaptionEvaluation(Evaluation):
    """Captions of a set of pictures, and their scores."""

    title: str
    outputs: list[str]
    scores: list[ScoreWithBaselines]
    results: list[dict[str, Any]]  # COCO's format: image_id and caption
    seconds: float
    compared: ComparedOutputs | None
    forms: ScoresInForm | None = None  # if references are in another Unicode form than outputs
    shows: ClassVar[str] = "scores, intervals and baselines"
    compares: ClassVar[bool] = True

    def details(self) -> list[str]:
        speed = f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} pictures/s, {self.seconds:.1f} s"
        return [speed] if self.forms is None else [self.forms.line(), speed]

    def facts(self) -> dict[str, Any]:
        """The speed, `results` as COCO's evaluation server reads them, and the scores in one Unicode form."""
        forms = {} if self.forms is None else {"in_one_form": self.forms._asdict()}
        return {"results": self.results, "seconds": self.seconds, **forms}

    def figure(self, name: str) -> "Figure":
        """The gain of each score over the baselines, a row for each."""
        from weft.figures.intervals import intervals

        return intervals(self.scores, title=f"{name}: {self.title}")


def exact(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> ScoreWithBaselines:
    """Share of captions that match one of the references word for word.

    Example:
        >>> exact(["A dog."], [["a cat", "a dog"]]).value
        1.0
    """
    right = [
        words(hypothesis) in [words(answer) for answer in answers]
        for hypothesis, answers in zip(hypotheses, references, strict=True)
    ]
    return mean_of(ratio("exact", SIGNATURE, higher_is_better=True), np.array(right), baselines={})


def scored(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[ScoreWithBaselines]:
    """Every score of a set of captions."""
    items = fingerprint(answer for answers in references for answer in answers)
    found = [
        exact(hypotheses, references),
        *bleu_n(hypotheses, references),
        rouge_l(hypotheses, references),
        cider_d(hypotheses, references),
    ]
    return [one._replace(items=items) for one in found]


def evaluate(
    captioner: Captioner, found: Captions, *, title: str, train: Sequence[Sequence[str]]
) -> CaptionEvaluation:
    """Caption and score.

    Args:
        captioner: with the trained model.
        found: pictures and references.
        title: names the data.
        train: captions of the training pictures, for the baseline; None takes the references in `found`.
    """
    begun = time.perf_counter()
    outputs = [best[0].text for best in captioner.captions(found.pixels)]
    seconds = time.perf_counter() - begun
    often = Counter(caption for captions in train or found.captions for caption in captions)
    usual = often.most_common(1)[0][0]
    name, answers = f"the most frequent caption, {usual!r}", [usual] * len(outputs)
    lowest = scored(answers, found.captions)
    return CaptionEvaluation(
        title=f"{title}, {plural(len(outputs), 'picture')}, {captioner.decoding.describe()}",
        outputs=outputs,
        scores=[
            ours._replace(baselines={name: theirs.value})
            for ours, theirs in zip(scored(outputs, found.captions), lowest, strict=True)
        ],
        results=[coco(number, text) for number, text in zip(found.numbers, outputs, strict=True)],
        seconds=seconds,
        compared=ComparedOutputs(outputs, found.captions, baselines={name: answers}),
        forms=_in_form(outputs, found.captions, captioner.vocabulary.form),
    )


def _in_form(outputs: Sequence[str], references: Sequence[Sequence[str]], form: str) -> ScoresInForm | None:
    """The scores in the form of the outputs; None if the references are in it already."""
    texts = [text for answers in references for text in answers]
    lines = not_in_form(texts, form)
    if not lines:
        return None
    found = scored(in_form(outputs, form), [in_form(answers, form) for answers in references])
    scores = {one.score.name: one.value for one in found}
    return ScoresInForm(form_name(form), lines, len(texts), scores)
