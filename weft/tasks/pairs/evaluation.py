"""How good a translator is, with all that it takes to believe it: signatures, intervals, floors, lengths.

Read next: ../metrics/metric.py; ../inspect/quality.py, which draws the table by length.
"""

import json
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch

from weft.data.parallel import complete
from weft.errors import DataError
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
    outputs: list[str]  # a line for each pair of the data; empty where the pair is left out
    left_out: int  # pairs without text on one side: not translated, and in no score
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
        rate = (len(self.outputs) - self.left_out) / max(self.seconds, 1e-9)
        lines.append(f"  {rate:.0f} sentences/s, {self.seconds:.1f} s")
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
        figures["left_out"] = self.left_out
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

    Pairs without text on one side are left out, as in training, and counted.

    Args:
        translator: at work.
        sources, references: text, a line each.
        title: which data.
        train: training sources and targets, for the floor "nearest training sentence".
        lowercase: BLEU and chrF in small letters, as much of the literature on small data has it.

    Raises:
        DataError: no pair has text on both sides.
    """
    kept = scorable(sources, references, title)
    count, left_out = len(sources), len(sources) - len(kept)
    sources, references = [sources[n] for n in kept], [references[n] for n in kept]
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
        title=f"{title}, {counted(len(kept), left_out, 'pairs')}, {translator.decoding.describe()}",
        outputs=aligned(outputs, kept, count),
        left_out=left_out,
        scores=scores,
        lengths=by_length(bleu, outputs, references, sources),
        floors=floors,
        perplexity=perplexity(loss),
        tokens=sum(len(target) + 1 for target in pairs.target),
        seconds=seconds,
        ratio=sum(len(line.split()) for line in outputs) / max(1, words),
    )


def scorable(sources: Sequence[str], references: Sequence[str], title: str) -> list[int]:
    """The numbers of the pairs that can be scored.

    Raises:
        DataError: there is none.
    """
    kept = complete(sources, references)
    if not kept:
        raise DataError(
            f"{title}: expected pairs with text on both sides, got {len(sources):,} pairs, each without a "
            "source or a reference; give both"
        )
    return kept


def counted(kept: int, left_out: int, what: str) -> str:
    """How much is scored, for a title.

    Example:
        >>> counted(748, 110, "pairs"), counted(3, 0, "pairs")
        ('748 pairs (110 more have an empty side and are left out)', '3 pairs')
    """
    more = f" ({left_out:,} more have an empty side and are left out)" if left_out else ""
    return f"{kept:,} {what}{more}"


def aligned(outputs: Sequence[str], kept: Sequence[int], count: int) -> list[str]:
    """A line for each pair of the data, an empty one where the pair was left out."""
    lines = [""] * count
    for number, output in zip(kept, outputs, strict=True):
        lines[number] = output
    return lines


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
