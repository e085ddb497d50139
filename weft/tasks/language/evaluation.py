"""The likelihood of a text: perplexity, nats per word and bits per character, next to an n-gram model.

Perplexity is per token, with </s>, so it is comparable only between models with the same vocabulary; nats per
word and bits per character are comparable between all. Read next: scoring.py, for the contexts
and the baseline.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.figures.records import Bucket, Figure
from weft.metrics.metric import ItemKind
from weft.metrics.probabilities import Perplexity
from weft.metrics.scored import ComparedOutputs, ScoreWithBaselines, mean_of, ratio
from weft.models import Generator
from weft.nn.positions import most_positions
from weft.tasks.evaluation import Evaluation, speed
from weft.tasks.language.data import Stream, lines_of
from weft.tasks.language.decoding import LanguageDecoding
from weft.tasks.language.scoring import (
    CountedNGrams,
    MixtureParts,
    MixtureWeights,
    cached_logp,
    counted,
    halves,
    ngram_logp,
    token_logp,
    too_long,
)
from weft.tasks.running_text.base import ProseData
from weft.wording import plural

BUCKETS = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Lower bounds of the frequency classes: how often a token occurs in training."""


MIXTURE = "perplexity of a mixture"


class TextLikelihood(NamedTuple):
    """Log-probabilities of the tokens of a text under one model."""

    name: str
    logp: np.ndarray  # [N] nats


@dataclass(frozen=True)
class ProseEvaluation(Evaluation):
    """The scores of a text under the model, next to those of an n-gram model; outputs are nats of lines."""

    context: str
    vocabulary: str
    stream: Stream
    buckets: list[Bucket]
    seconds: float
    shows: ClassVar[str] = "nats per token by how often it was seen"
    offers: ClassVar[tuple[ItemKind, ...]] = ("nats",)

    @property
    def used(self) -> ScoreWithBaselines:
        return self.scores[-1] if self.scores[-1].score.name.startswith(MIXTURE) else self.scores[0]

    def notes(self) -> list[str]:
        missing = "  baseline: none, because the training text that it counts is missing"
        return [] if self.buckets else [missing]

    def details(self) -> list[str]:
        lines = [speed(self.stream.size, "tokens", self.seconds)]
        names = "; ".join(self.buckets[0].nats) if self.buckets else ""
        lines.append(f"nats per token by how often it was seen in training: {names}")
        lines += [
            f"  {bucket.least:>7,} or more  {bucket.tokens:>9,} tokens"
            + "".join(f"{nats:>9.3f}" for nats in bucket.nats.values())
            for bucket in self.buckets
        ]
        return lines

    def facts(self) -> dict[str, Any]:
        return {
            "context": self.context,
            "vocabulary": self.vocabulary,
            "tokens": self.stream.size,
            "words": self.stream.words,
            "characters": self.stream.characters,
            "unknown": self.stream.unknown,
            "seconds": self.seconds,
            "by_frequency": [bucket._asdict() for bucket in self.buckets],
        }

    def figure(self, name: str) -> "Figure":
        """The loss by frequency of tokens, next to the n-gram model and the mixture."""
        from weft.figures.charts import nats_by_frequency

        note = (
            f"unit: token with </s> | vocabulary: {self.vocabulary} | context: {self.context} | "
            f"tokens: {self.stream.size:,}"
        )
        return nats_by_frequency(self.buckets, title=f"{name}: {self.title}", note=note)


def evaluate(
    model: Generator,
    stream: Stream,
    *,
    title: str,
    data: ProseData,
    decoding: LanguageDecoding,
    size: int,
    train: Stream | None,
    valid: Callable[[], Stream] | None,
) -> ProseEvaluation:
    """Score a text: the model, the n-gram model of the training text, and a mixture if `decoding` sets it."""
    begun = time.perf_counter()
    parts = mixture_parts(model, stream, data, decoding)
    seconds = time.perf_counter() - begun
    own = TextLikelihood("the model", parts.neural)
    known, mixture, ngrams = [own], None, _baseline(train, data, decoding, size)
    if ngrams is not None:
        known.append(TextLikelihood(ngrams.name, ngram_logp(ngrams, stream)))
    if decoding.mixture or decoding.cache:
        used = ngrams if decoding.mixture else None
        parts = parts._replace(ngram=known[1].logp if used else None)
        other = mixture_parts(model, valid(), data, decoding, used) if valid and decoding.tuned else None
        mixture = _mixture(parts, decoding, used, other)
    context, vocabulary = _context(model, stream, data, decoding), _vocabulary(stream, data, size)
    signature = f"vocabulary:{vocabulary}|context:{context}|unknown:{stream.unknown}"
    compared = _compared(stream, own, known[1:], signature)
    scores = _scored(stream, compared, signature)
    if mixture is not None:
        both = _compared(stream, mixture, known, signature).scored(Perplexity())
        scores.append(both.renamed(f"{MIXTURE} ({mixture.name})"))
    return ProseEvaluation(
        title=f"{title}, {plural(stream.lines, 'line')}"
        + ("" if ngrams else ", no baseline because the training text that it counts is missing"),
        context=context,
        vocabulary=vocabulary,
        outputs=[f"{logp:.4f}" for logp in stream.by_line(own.logp)],
        scores=scores,
        compared=[compared],
        stream=stream,
        buckets=by_frequency(stream, train, known, size) if train is not None else [],
        seconds=seconds,
    )


def _compared(
    stream: Stream, own: TextLikelihood, others: Sequence[TextLikelihood], signature: str
) -> ComparedOutputs:
    """The nats of each line under a model and under others."""
    nats = {one.name: -stream.by_line(one.logp) for one in others}
    end = "with </s>|" if stream.last is None else ""
    tokens = stream.by_line(np.ones(stream.size))
    return ComparedOutputs(
        -stream.by_line(own.logp), tokens, baselines=nats, reads="nats", about=f"{end}{signature}"
    )


def _scored(stream: Stream, compared: ComparedOutputs, signature: str) -> list[ScoreWithBaselines]:
    """Perplexity, nats per word and bits per character, each next to the other models' values."""
    end = " with </s>" if stream.last is None else ""
    found = [compared.scored(Perplexity())]
    for name, unit, count, scale in (
        ("nats per word", f"word{end}", stream.each[:, 0], 1.0),
        ("bits a character", "character with line ends", stream.each[:, 1], 1 / math.log(2)),
    ):
        metric = ratio(name, f"unit:{unit}|{signature}", higher_is_better=False)
        lowest = {key: nats * scale for key, nats in compared.baselines.items()}
        size, items = int(count.sum()), compared.fingerprint()
        found.append(mean_of(metric, compared.outputs * scale, count, beside=lowest, items=items, size=size))
    return found


def _baseline(
    train: Stream | None, data: ProseData, decoding: LanguageDecoding, size: int
) -> CountedNGrams | None:
    """The n-gram model of the training text; None if the text is missing."""
    if train is None and decoding.mixture:
        raise DataError(
            f"{data.train}: a mixture counts the n-grams of the training text, which is missing; "
            "put it back, or leave mixture out"
        )
    return None if train is None else counted_for(data, decoding, train, size)


def mixture_parts(
    model: Generator,
    stream: Stream,
    data: ProseData,
    decoding: LanguageDecoding,
    ngrams: CountedNGrams | None = None,
) -> MixtureParts:
    """Read a text with a model, in the context that it was trained with, and with its cache."""
    ngram = None if ngrams is None else ngram_logp(ngrams, stream)
    if decoding.cache:
        return cached_logp(model, stream, decoding.cache)._replace(ngram=ngram)
    logp = token_logp(model, stream, data.batches, length=data.length, stride=decoding.stride)
    return MixtureParts(logp, ngram)


def counted_for(data: ProseData, decoding: LanguageDecoding, train: Stream, size: int) -> CountedNGrams:
    """The n-gram model of the training text to compare this model with."""
    kind = data.vocabulary.kind if train.last is None else "imported"
    return counted(train, size=size, kind=kind, batching=data.batches, order=decoding.order)


def _context(model: Generator, stream: Stream, data: ProseData, decoding: LanguageDecoding) -> str:
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
    parts: MixtureParts, decoding: LanguageDecoding, ngrams: CountedNGrams | None, valid: MixtureParts | None
) -> TextLikelihood:
    """The mixture of a model with its cache, with the n-grams, or with both."""
    given, form = decoding.ngram_weight, ".3f"
    weights: tuple[MixtureWeights, ...]
    if given is not None and not decoding.tuned:
        weights, how, form = (MixtureWeights(given),), "as given", "g"
        logp = parts.mixed(weights[0])
    elif valid is None:
        logp, weights = halves(parts, given)
        how = "each half tuned on the other"
    else:
        weights, how = (valid.tuned(given),), "tuned on the validation text"
        logp = parts.mixed(weights[0])
    names, values = ["the model"], []
    if decoding.cache:
        names.append(f"a cache of {decoding.cache:,} tokens")
        sharp = " and ".join(f"{one.sharpness:g}" for one in weights)
        values.append(f"the cache {_listed([one.cache for one in weights], form)} (sharpness {sharp})")
    if ngrams is not None:
        names.append(f"KN{ngrams.model.order}")
        values.append(f"{names[-1]} {_listed([one.ngram for one in weights], form)}")
    title = ", ".join(names[:-1]) + f" and {names[-1]}"
    several = "s" if len(weights) + len(values) > 2 else ""
    return TextLikelihood(f"{title}, weight{several} of {' and of '.join(values)}, {how}", logp)


def _listed(numbers: list[float], form: str) -> str:
    return " and ".join(f"{number:{form}}" for number in numbers)


def by_frequency(stream: Stream, train: Stream, models: list[TextLikelihood], size: int) -> list[Bucket]:
    """The loss of each model for rare and for frequent tokens."""
    target, seen = stream.tokens[1:], np.bincount(train.tokens[1:], minlength=size)
    place = np.searchsorted(BUCKETS, seen[target], "right") - 1
    found = []
    for number, least in enumerate(BUCKETS):
        here = place == number
        if here.any():
            nats = {model.name: -float(model.logp[here].mean()) for model in models}
            found.append(Bucket(least, int(here.sum()), nats))
    return found
