"""The log-probability of given translations, line by line. Read next: evaluation.py."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from weft.data.batching import length_groups
from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError, ShapeError
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines, report
from weft.models import Generator
from weft.tasks.evaluation import Evaluation
from weft.tasks.predictor import Failure, Place, each, separated
from weft.tasks.seq2seq.decoding import GenerationEvaluationSettings
from weft.wording import plural

TOKENS = 2000  # target positions whose distributions are held at once


class GivenLine(NamedTuple):
    """A given translation with its log-probability."""

    logp: float | None  # nats, with <eos>; None if the model cannot read the pair
    tokens: int  # with <eos>
    text: str


@dataclass(frozen=True, kw_only=True)
class GivenScores(Evaluation):
    """What `weft evaluate RUN --score FILE` prints."""

    title: str
    outputs: list[str]  # log-probability, tokens, text, with tabs between them; empty if it has no score
    scores: list[ScoreWithBaselines]  # the perplexity per token, without a baseline
    lines: list[GivenLine]
    left_out: int  # pairs with an empty side
    wrong: list[str]
    summed: list[GivenLine]  # the lines with a score, of pairs with text on both sides

    def text(self) -> str:
        """The scores of each line and of all lines, as text."""
        total = sum(one.logp or 0.0 for one in self.summed)
        tokens = sum(one.tokens for one in self.summed)
        shown = counted(len(self.summed), self.left_out, "translation")
        shown += f", {len(self.wrong):,} that the model cannot score" if self.wrong else ""
        whole = (
            f"{self.title}: {shown}, log-probability {total:.2f} nats, {plural(tokens, 'token')} with <eos>"
        )
        return "\n".join([*self.outputs, whole, *report(self.scores)])

    def facts(self) -> dict[str, Any]:
        rows = [one._asdict() for one in self.lines]
        return {"left_out": self.left_out, "unanswered": len(self.wrong), "lines": rows}


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
    settings: GenerationEvaluationSettings,
    *,
    labels: Sequence[str] = (),
    kept: Sequence[int] | None = None,
) -> GivenScores:
    """The lines of a file as answers to the sources; pairs that are too long have no score and are named.

    Args:
        model: in evaluation mode.
        count: sources; the file has as many lines.
        encode: lines to the numbers of their pieces.
        batch: makes batches.
        settings: `score` names the file; nothing else may be set.
        labels: the label before a tab that each line begins with; empty for none.
        kept: the numbers of the sources whose pair has text on both sides, the only ones that are summed;
            by default all.

    Raises:
        ConfigError: something else is set.
        DataError: the number of lines or a label is wrong; or no line can be scored.
    """
    path = settings.score
    assert path is not None
    beside = sorted({*settings.given()} - {"score"})
    if beside:
        raise ConfigError(
            f"--score: cannot be combined with {beside[0]}, because nothing is searched; leave it out"
        )
    given, texts = _given(path, count, labels)
    places = (Place(str(path), number) for number in range(1, count + 1))
    found, wrong = separated(_attempts(model, encode(texts), batch), places)
    lines = [
        GivenLine(None, 0, line) if one is None else GivenLine(*one, line)
        for one, line in zip(found, given, strict=True)
    ]
    kept = range(count) if kept is None else kept
    summed = [lines[number] for number in kept if lines[number].logp is not None]
    if not summed:
        raise DataError(wrong[0] if wrong else "expected pairs with text on both sides", path=path)
    outputs = ["" if one.logp is None else f"{one.logp:.4f}\t{one.tokens}\t{one.text}" for one in lines]
    return GivenScores(
        title=str(path),
        outputs=outputs,
        scores=[_perplexity(summed)],
        lines=lines,
        left_out=count - len(kept),
        wrong=wrong,
        summed=summed,
    )


def _given(path: Path, count: int, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines of a file, and their texts without labels."""
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
    return given, texts


def _perplexity(lines: Sequence[GivenLine]) -> ScoreWithBaselines:
    metric = ratio(
        "perplexity", "unit:token with <eos>|given lines", higher_is_better=False, form="perplexity"
    )
    logp, tokens = np.array([one[:2] for one in lines]).T
    return mean_of(metric, -logp, tokens, baselines={}, size=int(tokens.sum()))


def scores_of(model: Generator, written: Sequence[Sequence[int]], batch: Batcher) -> list[tuple[float, int]]:
    """The log-probability of each target of its source, in nats, and its tokens; <eos> counts in both.

    Raises:
        DataError, ShapeError: a pair cannot be read.
    """
    found = []
    for one in _attempts(model, written, batch):
        if isinstance(one, DataError | ShapeError):
            raise one
        found.append(one)
    return found


def _attempts(
    model: Generator, written: Sequence[Sequence[int]], batch: Batcher
) -> list[tuple[float, int] | Failure]:
    """Like `scores_of`, with an error instead of the score of a pair that cannot be read."""
    lengths = [len(row) + 1 for row in written]
    found: list[tuple[float, int] | Failure] = [(0.0, 0)] * len(written)

    def scored(numbers: Sequence[int]) -> list[tuple[float, int]]:
        logp = _logp(model, batch(list(numbers), [list(written[n]) for n in numbers]))
        return [(value, lengths[n]) for n, value in zip(numbers, logp, strict=True)]

    for numbers in length_groups(lengths, TOKENS):
        for number, one in zip(numbers, each(numbers, scored), strict=True):
            found[number] = one
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


def counted(kept: int, left_out: int, what: str) -> str:
    """The number of scored pairs, for a title.

    Example:
        >>> counted(748, 110, "pair"), counted(1, 0, "pair")
        ('748 pairs (110 more left out, with an empty side)', '1 pair')
    """
    more = f" ({left_out:,} more left out, with an empty side)" if left_out else ""
    return f"{plural(kept, what)}{more}"
