"""How good a translator is, with all that it takes to believe it: signatures, intervals, floors, lengths.

Read next: ../metrics/metric.py; ../inspect/quality.py, which draws the table by length.
"""

import json
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from weft.metrics import floor
from weft.metrics.bleu import Bleu
from weft.metrics.bootstrap import confidence
from weft.metrics.bylength import LengthRow, by_length, table
from weft.metrics.chrf import Chrf
from weft.metrics.floor import beside
from weft.metrics.meteor import Meteor
from weft.metrics.metric import Score
from weft.models import Generator
from weft.tasks.pairs.batch import collate_pairs
from weft.tasks.pairs.reading import encode_pairs
from weft.tasks.pairs.translator import Translator

TOKENS = 4000  # target tokens a batch while perplexity is computed


class Floor(NamedTuple):
    """What needs no model: the score to beat."""

    name: str
    bleu: float


class PairEvaluation(NamedTuple):
    """A set of translations and all that is known of it."""

    title: str  # which data, which search
    outputs: list[str]
    scores: list[Score]
    lengths: list[LengthRow]  # BLEU by source length
    floors: list[Floor]
    perplexity: float  # a target token, <eos> counted
    tokens: int  # target tokens it was computed over
    seconds: float  # of the search
    ratio: float  # words of the outputs to words of the references

    def text(self) -> str:
        """For a reader."""
        bleu = self.scores[0]
        lines = [self.title]
        lines += [f"  {score}" for score in self.scores]
        lines.append(
            f"  perplexity {self.perplexity:.2f} (a token of the model's vocabulary, <eos> counted|"
            f"tokens:{self.tokens})"
        )
        for floor_ in self.floors:
            beaten = beside(bleu.value, floor_.bleu)
            lines.append(f"  floor: {floor_.name} {floor_.bleu:.2f} BLEU{beaten}")
        lines.append(f"  output is {self.ratio:.2f} times as long as the references (words)")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):.0f} sentences/s, {self.seconds:.1f} s")
        lines.append("BLEU by source length (words):")
        lines += ["  " + row for row in table(self.lengths).splitlines()]
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        scores = {score.name: score._asdict() for score in self.scores}
        lengths = [
            {"length": row.label, "sentences": row.sentences, "bleu": row.score and row.score.value}
            for row in self.lengths
        ]
        floors = {one.name: one.bleu for one in self.floors}
        figures = {"perplexity": self.perplexity, "seconds": self.seconds, "length_ratio": self.ratio}
        everything = {
            "title": self.title,
            "scores": scores,
            "by_length": lengths,
            "floors": floors,
            **figures,
        }
        return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    title: str,
    train: tuple[Sequence[str], Sequence[str]] | None = None,
    lowercase: bool = False,
) -> PairEvaluation:
    """Translate and score: BLEU, chrF, METEOR with confidence intervals, BLEU by length, floors, perplexity.

    Args:
        translator: at work.
        sources, references: text, a line each.
        title: which data.
        train: training sources and targets, for the floor "nearest training sentence".
        lowercase: BLEU and chrF in small letters, as much of the literature on small data has it.
    """
    begun = time.perf_counter()
    outputs = [found[0].text for found in translator.translate(sources)]
    seconds = time.perf_counter() - begun
    bleu = Bleu(lowercase=lowercase)
    metrics = (bleu, Chrf(lowercase=lowercase), Meteor())
    scores = [confidence(metric, outputs, references, sources) for metric in metrics]
    floors = [Floor("source copied", bleu.score(floor.copy(sources), references).value)]
    if train is not None:
        found = floor.nearest(*train, sources)
        floors.append(
            Floor("translation of the nearest training sentence", bleu.score(found, references).value)
        )
    pairs = encode_pairs(translator.source, translator.target, sources, references)
    loss = mean_loss(translator.model, pairs.source, pairs.target)
    words = sum(len(line.split()) for line in references)
    return PairEvaluation(
        title=f"{title}, {len(sources):,} pairs, {translator.decoding.describe()}",
        outputs=outputs,
        scores=scores,
        lengths=by_length(bleu, outputs, references, sources),
        floors=floors,
        perplexity=perplexity(loss),
        tokens=sum(len(target) + 1 for target in pairs.target),
        seconds=seconds,
        ratio=sum(len(line.split()) for line in outputs) / max(1, words),
    )


def mean_loss(model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> float:
    """Nats a target token, <eos> counted, without label smoothing; the model is in evaluation mode."""
    device = next(model.parameters()).device
    order = sorted(range(len(targets)), key=lambda n: len(targets[n]))
    total, count, batch = 0.0, 0, []
    for place, number in enumerate(order):
        batch.append(number)
        if (len(targets[number]) + 1) * len(batch) >= TOKENS or place + 1 == len(order):
            with torch.no_grad():
                pairs = collate_pairs([sources[n] for n in batch], [targets[n] for n in batch])
                loss = model.loss(pairs.to(device))
            total, count, batch = total + float(loss.total), count + int(loss.count), []
    return total / max(1, count)


def perplexity(loss: float) -> float:
    """e to the loss in nats, infinite where that is no number."""
    return math.exp(loss) if loss < 700 else math.inf
