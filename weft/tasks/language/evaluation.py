"""The likelihood of a text: perplexity, nats per word and bits per character, next to an n-gram model.

Perplexity is per token, with </s>, so it is comparable only between models with the same vocabulary; nats per
word and bits per character are comparable between all. Read next: scoring.py, for the contexts; mixture.py,
for the baseline.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import Scored, fingerprint
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.tasks.evaluation import Evaluation
from weft.tasks.language.mixture import Counted, counted, halves, mixed, ngram_logp, tuned
from weft.tasks.language.scoring import token_logp, too_long
from weft.tasks.language.stream import Stream, lines_of
from weft.tasks.language.writing import Writing
from weft.tasks.shared.running_text import ProseData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUCKETS = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Lower bounds of the frequency classes: how often a token occurs in training."""


class Likelihood(NamedTuple):
    """Log-probabilities of the tokens of a text under one model."""

    name: str
    logp: np.ndarray  # [N] nats

    @property
    def perplexity(self) -> float:
        """e to the mean loss in nats."""
        mean = -float(self.logp.mean())
        return math.exp(mean) if mean < 700 else math.inf


class Bucket(NamedTuple):
    """Tokens with about the same frequency in training."""

    least: int
    tokens: int
    nats: dict[str, float]  # per token, by model


@dataclass(frozen=True)
class ProseEvaluation(Evaluation):
    """The scores of a text under the model, next to those of an n-gram model."""

    title: str
    context: str
    vocabulary: str
    outputs: list[str]  # the log-probability of each line in nats, with its end
    scores: list[Scored]  # perplexity, nats per word, bits a character; then the mixture's perplexity
    model: Likelihood
    lines: int
    words: int
    characters: int
    unknown: int
    buckets: list[Bucket]
    seconds: float
    shows: ClassVar[str] = "nats per token by how often it was seen"

    def details(self) -> list[str]:
        """Speed, and loss by frequency."""
        lines = []
        if not self.buckets:
            lines.append("  baseline: none, because the training text that it counts is missing")
        lines.append(
            f"  {len(self.model.logp) / max(self.seconds, 1e-9):,.0f} tokens/s, {self.seconds:.1f} s"
        )
        lines.append("nats per token by how often it was seen in training:")
        lines += [
            f"  {bucket.least:>7,} or more  {bucket.tokens:>9,} tokens  "
            + "  ".join(f"{name} {nats:.3f}" for name, nats in bucket.nats.items())
            for bucket in self.buckets
        ]
        return lines

    def facts(self) -> dict[str, Any]:
        """Context, counts, loss by frequency."""
        return {
            "context": self.context,
            "vocabulary": self.vocabulary,
            "tokens": len(self.model.logp),
            "words": self.words,
            "characters": self.characters,
            "unknown": self.unknown,
            "seconds": self.seconds,
            "by_frequency": [bucket._asdict() for bucket in self.buckets],
        }

    def figure(self, name: str) -> "Figure":
        """The loss by frequency of tokens, next to the n-gram model and the mixture."""
        from weft.tasks.language.figure import nats_by_frequency

        note = (
            f"unit: token with </s> | vocabulary: {self.vocabulary} | context: {self.context} | "
            f"tokens: {len(self.model.logp):,}"
        )
        return nats_by_frequency(self.buckets, title=f"{name}: {self.title}", note=note)


def evaluate(
    model: Generator,
    stream: Stream,
    *,
    title: str,
    data: ProseData,
    decoding: Writing,
    size: int,
    train: Stream | None,
    valid: Callable[[], Stream] | None,
) -> ProseEvaluation:
    """Score a text: the model, the n-gram model of the training text, and a mixture if `decoding` sets one.

    Args:
        model: in evaluation mode.
        stream: the text.
        title: names the text.
        data, decoding: how the text is read; the n-grams and the mixture.
        size: V.
        train: the training text; None if it is missing.
        valid: reads the validation text, for tuning the weight; None if it is `stream` itself.

    Raises:
        DataError: a mixture requires the training text, which is missing.
    """
    begun = time.perf_counter()
    own = Likelihood("the model", logp_of(model, stream, data, decoding))
    seconds = time.perf_counter() - begun
    known, mixture = [own], None
    if train is not None:
        counted = counted_for(data, decoding, train, size)
        known.append(Likelihood(counted.name, ngram_logp(counted, stream)))
        if decoding.mixture:
            mixture = _mixture(model, own.logp, known[1].logp, counted, data, decoding, valid)
    elif decoding.mixture:
        raise DataError(
            f"{data.train}: a mixture counts the n-grams of the training text, which is missing; "
            "put it back, or leave mixture out"
        )
    context, vocabulary = _context(model, stream, data, decoding), _vocabulary(stream, data, size)
    signature = f"vocabulary:{vocabulary}|context:{context}|unknown:{stream.unknown}"
    scores = _scored(stream, own, known[1:], signature)
    if mixture is not None:
        both = _scored(stream, mixture, known, signature)[0]
        scores.append(both.renamed(f"perplexity of a mixture ({mixture.name})"))
    return ProseEvaluation(
        title=f"{title}, {stream.lines:,} lines",
        context=context,
        vocabulary=vocabulary,
        outputs=[f"{logp:.4f}" for logp in stream.by_line(own.logp)],
        scores=scores,
        model=own,
        lines=stream.lines,
        words=stream.words,
        characters=stream.characters,
        unknown=stream.unknown,
        buckets=by_frequency(stream, train, known, size) if train is not None else [],
        seconds=seconds,
    )


def _scored(stream: Stream, own: Likelihood, others: list[Likelihood], signature: str) -> list[Scored]:
    """Perplexity, nats per word and bits per character, each next to the other models' values."""
    nats = -stream.by_line(own.logp)
    tokens = stream.by_line(np.ones(len(own.logp)))
    end = " with </s>" if stream.last is None else ""
    items = fingerprint([str(stream.lines), *map(str, stream.each.ravel())])
    found = []
    for name, unit, count, scale, form in (
        ("perplexity", f"token{end}", tokens, 1.0, "perplexity"),
        ("nats per word", f"word{end}", stream.each[:, 0], 1.0, "mean"),
        ("bits a character", "character with line ends", stream.each[:, 1], 1 / math.log(2), "mean"),
    ):
        metric = ratio(name, f"unit:{unit}|{signature}", higher_is_better=False, form=form)  # type: ignore[arg-type]
        size = int(count.sum())
        lowest = {one.name: float(metric.value(np.array([-one.logp.sum() * scale, size]))) for one in others}
        found.append(mean_of(metric, nats * scale, count, baselines=lowest, items=items, size=size))
    return found


def logp_of(model: Generator, stream: Stream, data: ProseData, decoding: Writing) -> np.ndarray:
    """Log-probabilities [N] in the context that the model was trained with."""
    return token_logp(model, stream, data.batches, length=data.length, stride=decoding.stride)


def counted_for(data: ProseData, decoding: Writing, train: Stream, size: int) -> Counted:
    """The n-gram model of the training text to compare this model with."""
    kind = data.vocabulary.kind if train.last is None else "imported"
    return counted(train, size=size, kind=kind, batching=data.batches, order=decoding.order)


def _context(model: Generator, stream: Stream, data: ProseData, decoding: Writing) -> str:
    if data.batches == "windows":
        return f"windows of {data.length}, stride {decoding.stride or data.length}"
    if data.batches == "stream":
        return "streamed"
    long = too_long(model, list(lines_of(stream)))
    most = most_positions(model.decoder)
    where = ", ".join(str(number + 1) for number in long[:3]) + " ..." * (len(long) > 3)
    return f"the line, in windows of {most} where it is longer (lines {where})" if long else "the line"


def _vocabulary(stream: Stream, data: ProseData, size: int) -> str:
    if stream.last is not None:
        return f"imported {size}"
    return f"{data.vocabulary.kind} {size}{' lowercase' if data.vocabulary.lowercase else ''}"


def _mixture(
    model: Generator,
    neural: np.ndarray,
    ngram: np.ndarray,
    counted: Counted,
    data: ProseData,
    decoding: Writing,
    valid: Callable[[], Stream] | None,
) -> Likelihood:
    """The mixture of a model and the n-grams, with the recipe's weight."""
    of = f"KN{counted.model.order}"
    name = f"the model and {of}"
    if decoding.mixture != "tuned":
        weight = float(decoding.mixture)
        return Likelihood(f"{name}, weight of {of} {weight:g}, as given", mixed(neural, ngram, weight))
    if valid is None:
        logp, (first, second) = halves(neural, ngram)
        tried = f"weights of {of} {first:.3f} and {second:.3f}, each half tuned on the other"
        return Likelihood(f"{name}, {tried}", logp)
    stream = valid()
    weight = tuned(logp_of(model, stream, data, decoding), ngram_logp(counted, stream))
    name = f"{name}, weight of {of} {weight:.3f}, tuned on the validation text"
    return Likelihood(name, mixed(neural, ngram, weight))


def by_frequency(stream: Stream, train: Stream, models: list[Likelihood], size: int) -> list[Bucket]:
    """The loss of each model for rare and for frequent tokens.

    Args:
        stream: the text.
        train: the training text.
        models: their log-probabilities of the text.
        size: V.
    """
    target, seen = stream.tokens[1:], np.bincount(train.tokens[1:], minlength=size)
    place = np.searchsorted(BUCKETS, seen[target], "right") - 1
    found = []
    for number, least in enumerate(BUCKETS):
        here = place == number
        if here.any():
            nats = {model.name: -float(model.logp[here].mean()) for model in models}
            found.append(Bucket(least, int(here.sum()), nats))
    return found
