"""The log-probability of given translations, line by line. Read next: evaluation.py."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import Scored, report
from weft.models import Generator
from weft.tasks.evaluation import Evaluation
from weft.tasks.shared.like_length import groups
from weft.tasks.shared.writing.kept import counted

TOKENS = 2000  # target positions whose distributions are held at once


class GivenLine(NamedTuple):
    """One given translation."""

    logp: float  # nats, with <eos>
    tokens: int  # with <eos>
    text: str


@dataclass(frozen=True)
class GivenScores(Evaluation):
    """What `weft evaluate RUN --score FILE` prints."""

    title: str
    outputs: list[str]  # log-probability, tokens, text, with tabs between them
    scores: list[Scored]  # the perplexity per token, without a baseline
    lines: list[GivenLine]
    kept: Sequence[int]  # numbers of the lines that are summed; the others belong to pairs with an empty side

    def text(self) -> str:
        """The scores of each line and of all lines, as text."""
        kept = [self.lines[number] for number in self.kept]
        total, tokens = sum(one.logp for one in kept), sum(one.tokens for one in kept)
        shown = counted(len(self.kept), len(self.lines) - len(self.kept), "translations")
        whole = f"{self.title}: {shown}, log-probability {total:.2f} nats, {tokens:,} tokens with <eos>"
        return "\n".join([*self.outputs, whole, *report(self.scores)])

    def facts(self) -> dict[str, Any]:
        """The scores of each line."""
        rows = [one._asdict() for one in self.lines]
        return {"left_out": len(self.lines) - len(self.kept), "lines": rows}


class Batch(Protocol):
    """Sources and targets; see weft.models.SequencePair."""

    def to(self, device: torch.device) -> Any:
        """The same on a device."""


Batcher = Callable[[list[int], list[list[int]]], Batch]
"""The sources of these numbers, with these targets, as a batch."""


def score_file(
    model: Generator,
    count: int,
    encode: Callable[[list[str]], Sequence[Sequence[int]]],
    batch: Batcher,
    options: Mapping[str, Any],
    *,
    labels: Sequence[str] = (),
    kept: Sequence[int] | None = None,
) -> GivenScores:
    """The lines of a file as answers to the sources.

    Args:
        model: in evaluation mode.
        count: sources; the file has as many lines.
        encode: lines to the numbers of their pieces.
        batch: makes batches.
        options: of the command; `score` names the file, and no other may be given.
        labels: the label before a tab that each line begins with; empty for none.
        kept: the numbers of the sources whose pair has text on both sides, the only ones that are summed;
            by default all.

    Raises:
        ConfigError: there are other options.
        DataError: the number of lines or a label is wrong.
    """
    path: Path = options["score"]
    beside = sorted({*options} - {"score"})
    if beside:
        raise ConfigError(
            f"--score: expected no setting of the search, since given lines are scored; got {beside[0]}"
        )
    given = list(read_lines(path))
    if len(given) != count:
        raise DataError(f"expected {count:,} lines, one for each source, got {len(given):,}", path=path)
    texts = given
    if labels:
        texts = [line.partition("\t")[2] for line in given]
        for number, (line, label) in enumerate(zip(given, labels, strict=True), 1):
            if not line.startswith(f"{label}\t"):
                raise DataError(
                    f"expected {label} TAB TEXT, as --output writes it, got {line[:40]!r}",
                    path=path,
                    line=number,
                )
    found = scores_of(model, encode(texts), batch)
    lines = [GivenLine(logp, tokens, line) for (logp, tokens), line in zip(found, given, strict=True)]
    kept = range(count) if kept is None else kept
    outputs = [f"{one.logp:.4f}\t{one.tokens}\t{one.text}" for one in lines]
    return GivenScores(str(path), outputs, [_perplexity([lines[n] for n in kept])], lines, kept)


def _perplexity(lines: Sequence[GivenLine]) -> Scored:
    metric = ratio(
        "perplexity", "unit:token with <eos>|given lines", higher_is_better=False, form="perplexity"
    )
    logp, tokens = np.array([one[:2] for one in lines]).T
    return mean_of(metric, -logp, tokens, baselines={}, size=int(tokens.sum()))


def scores_of(model: Generator, written: Sequence[Sequence[int]], batch: Batcher) -> list[tuple[float, int]]:
    """The log-probability of each target of its source, in nats, and its tokens; <eos> counts in both."""
    lengths = [len(row) + 1 for row in written]
    found = [(0.0, 0)] * len(written)
    for numbers in groups(lengths, TOKENS):
        logp = _logp(model, batch(numbers, [list(written[n]) for n in numbers]))
        for n, value in zip(numbers, logp, strict=True):
            found[n] = value, lengths[n]
    return found


def _logp(model: Generator, batch: Batch) -> list[float]:
    here = batch.to(next(model.parameters()).device)
    with torch.inference_mode():
        logp = model.head(model.features(here)).gather(2, here.target_out[..., None])[..., 0]
        values: list[float] = (logp.double() * here.target_mask).sum(1).tolist()
    return values


def perplexity(loss: float) -> float:
    """exp(loss) for a loss in nats; infinite on overflow."""
    return math.exp(loss) if loss < 700 else math.inf
