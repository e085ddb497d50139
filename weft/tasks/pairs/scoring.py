"""Given translations, scored: how probable the model finds each line. Read next: evaluation.py."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.tasks.pairs.batch import collate_pairs
from weft.tasks.pairs.evaluation import perplexity
from weft.tasks.pairs.reading import encode_pairs
from weft.tasks.pairs.translator import Translator

TOKENS = 2000  # target positions whose distributions are held at once


class Scored(NamedTuple):
    """One given translation."""

    logp: float  # nats, <eos> counted
    tokens: int  # <eos> counted
    text: str


class GivenScores(NamedTuple):
    """What `weft evaluate RUN --score FILE` prints."""

    title: str
    lines: list[Scored]

    @property
    def outputs(self) -> list[str]:
        """A line each: log-probability, tokens, text, with tabs between them."""
        return [f"{one.logp:.4f}\t{one.tokens}\t{one.text}" for one in self.lines]

    @property
    def perplexity(self) -> float:
        """e to the mean loss of a token."""
        return perplexity(
            -sum(one.logp for one in self.lines) / max(1, sum(one.tokens for one in self.lines))
        )

    def text(self) -> str:
        """For a reader: each line, and all together."""
        total, tokens = sum(one.logp for one in self.lines), sum(one.tokens for one in self.lines)
        whole = (
            f"{self.title}: {len(self.lines):,} translations, log-probability {total:.2f} nats, "
            f"{tokens:,} tokens with <eos>, perplexity {self.perplexity:.3f} a token"
        )
        return "\n".join([*self.outputs, whole])

    def json(self) -> str:
        """For a program."""
        rows = [one._asdict() for one in self.lines]
        return (
            json.dumps({"title": self.title, "perplexity": self.perplexity, "lines": rows}, indent=1) + "\n"
        )


def score_file(
    translator: Translator, sources: Sequence[str], path: Path, beside: Sequence[str]
) -> GivenScores:
    """The lines of a file as translations of the sources.

    Args:
        translator: at work.
        sources: text.
        path: as many lines as sources.
        beside: names of other options that came; they mean nothing here.

    Raises:
        ConfigError: other options.
        DataError: another number of lines.
    """
    if beside:
        raise ConfigError(f"--score: searches nothing, so {beside[0]} means nothing; leave it out")
    given = list(read_lines(path))
    if len(given) != len(sources):
        raise DataError(
            f"{path}: {len(given):,} lines came for {len(sources):,} sources; give one for each source"
        )
    return GivenScores(str(path), scores_of(translator, sources, given))


def scores_of(translator: Translator, sources: Sequence[str], given: Sequence[str]) -> list[Scored]:
    """The log-probability of each given translation of its source."""
    model = translator.model
    read, written, _ = encode_pairs(translator.source, translator.target, sources, given)
    order = sorted(range(len(written)), key=lambda n: len(written[n]))
    found: list[Scored] = [Scored(0.0, 0, "")] * len(written)
    batch: list[int] = []
    for place, number in enumerate(order):
        batch.append(number)
        last = place + 1 == len(order)
        if last or (len(written[order[place + 1]]) + 1) * (len(batch) + 1) > TOKENS:
            logp = _logp(model, [read[n] for n in batch], [written[n] for n in batch])
            for n, value in zip(batch, logp, strict=True):
                found[n] = Scored(value, len(written[n]) + 1, given[n])
            batch = []
    return found


def _logp(
    model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[float]:
    batch = collate_pairs(sources, targets).to(next(model.parameters()).device)
    with torch.inference_mode():
        logp = model.head(model.features(batch)).gather(2, batch.target_out[..., None])[..., 0]
        return (logp.double() * batch.target_mask).sum(1).tolist()
