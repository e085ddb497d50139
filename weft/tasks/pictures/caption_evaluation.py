"""How good captions are: exact ones, BLEU-1 to 4, ROUGE-L, CIDEr-D, beside the most frequent caption."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.metrics.bleu_n import bleu_n
from weft.metrics.captions import SIGNATURE, words
from weft.metrics.cider import cider_d
from weft.metrics.floor import beside
from weft.metrics.metric import Score
from weft.metrics.rouge import rouge_l
from weft.tasks.pictures.captioner import Captioner
from weft.tasks.pictures.data import Captions


class CaptionEvaluation(NamedTuple):
    """Captions of a set of pictures and all that is known of them."""

    title: str
    outputs: list[str]
    scores: list[Score]
    floor: list[Score]  # the same of the most frequent caption
    caption: str  # which one that is
    results: list[dict[str, Any]]  # COCO's form: image_id and caption
    seconds: float

    def text(self) -> str:
        """For a reader."""
        lines = [self.title]
        for ours, theirs in zip(self.scores, self.floor, strict=True):
            below = beside(ours.value, theirs.value)
            lines.append(f"  {ours}; floor {theirs.value:.2f}{below}")
        lines.append(f"  floor: the most frequent caption, {self.caption!r}")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.0f} pictures/s, {self.seconds:.1f} s")
        return "\n".join(lines)

    def json(self) -> str:
        """For a program; `results` is what COCO's evaluation server reads."""
        everything = {
            "title": self.title,
            "scores": {one.name: one._asdict() for one in self.scores},
            "floor": {"caption": self.caption, **{one.name: one.value for one in self.floor}},
            "results": self.results,
            "seconds": self.seconds,
        }
        return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def exact(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Share of captions that are one of the references, word by word.

    Example:
        >>> exact(["A dog."], [["a cat", "a dog"]]).value
        1.0
    """
    right = [
        words(hypothesis) in [words(answer) for answer in answers]
        for hypothesis, answers in zip(hypotheses, references, strict=True)
    ]
    return Score("exact", sum(right) / len(right), SIGNATURE, len(right))


def scored(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
    """Every score of a set of captions."""
    return [
        exact(hypotheses, references),
        *bleu_n(hypotheses, references),
        rouge_l(hypotheses, references),
        cider_d(hypotheses, references),
    ]


def evaluate(
    captioner: Captioner, found: Captions, *, title: str, train: Sequence[Sequence[str]]
) -> CaptionEvaluation:
    """Caption and score.

    Args:
        captioner: at work.
        found: pictures and references.
        title: which data.
        train: captions of the training pictures, for the floor; of these where they are gone.
    """
    begun = time.perf_counter()
    outputs = [best[0].text for best in captioner.captions(found.pixels)]
    seconds = time.perf_counter() - begun
    often = Counter(caption for captions in train or found.captions for caption in captions)
    usual = often.most_common(1)[0][0]
    return CaptionEvaluation(
        title=f"{title}, {len(outputs):,} pictures, {captioner.decoding.describe()}",
        outputs=outputs,
        scores=scored(outputs, found.captions),
        floor=scored([usual] * len(outputs), found.captions),
        caption=usual,
        results=[coco(number, text) for number, text in zip(found.numbers, outputs, strict=True)],
        seconds=seconds,
    )


def coco(number: int | str, caption: str) -> dict[str, Any]:
    """A record of COCO's results."""
    return {"image_id": number, "caption": caption}
