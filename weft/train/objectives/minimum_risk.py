"""Minimum-risk training: minimise the expected error of the model's own output, for example by BLEU.

    R(θ) = Σ_x Σ_{y in S(x)} Q(y | x) Δ(y, y*),   Q(y | x) = P(y | x)^α / Σ_{y' in S(x)} P(y' | x)^α

with S(x) distinct candidates, sampled from the model or found by beam search, and Δ the error of a candidate
against the reference y*. The gradient flows through Q only, so Δ can be any score.
Start from a trained model (training.start). Read next: ../../metrics/bleu.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.metrics.bleu import SentenceBleu
from weft.metrics.metric import Metric
from weft.models import Generator
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss
from weft.nn.randomness import open_generator
from weft.search.beam import beam_search
from weft.search.hypotheses import to_lists
from weft.search.sampling import sample
from weft.setting_types import AtLeastOne, NonNegative, Positive, check_fields
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.task import Pipeline
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.train.objectives.objective import Criterion, Objective, mirror
from weft.tree import take


@dataclass(frozen=True, kw_only=True)
class MinimumRisk(Objective):
    """Minimum-risk training.

    The loss is the expected error, 0 to 1 if the reference has the metric's best value, and is averaged over
    sources, not tokens.

    Args:
        candidates: maximum number of candidates per source; duplicates count once.
        search: "sample" draws candidates from the model, "beam" takes the best ones of a beam search.
        sharpness: α; small values make Q flatter, 1 is the model's own distribution.
        reference: add the reference to the candidates.
        likelihood: weight of the reference's mean cross-entropy per token, in nats, added to the risk.
        max_ratio, max_extra: a candidate has at most max_ratio * (reference tokens) + max_extra tokens.
        metric: a part of weft/metrics; Δ is 1 - score / (score of the reference), or the score itself if low
            values are better.

    Raises:
        ConfigError: a number is out of its range.

    Source: Shen et al. 2016, equations 5 to 8 and algorithm 1; with the likelihood: Wu et al. 2018.

    Example:
        >>> MinimumRisk(candidates=5, search="beam", likelihood=0.1).candidates
        5
    """

    candidates: AtLeastOne = 10
    search: Literal["sample", "beam"] = "sample"
    sharpness: Positive = 0.005
    reference: bool = False
    likelihood: NonNegative = 0.0
    max_ratio: NonNegative = 2.0
    max_extra: AtLeastOne = 10
    metric: Callable[[], Metric] = SentenceBleu

    def __post_init__(self) -> None:
        check_fields(self)
        if self.candidates + self.reference < 2:
            raise ConfigError(
                "candidates: expected at least 2, got 1, because the risk of one candidate has no gradient"
            )

    def build(self, pipeline: Pipeline, model: nn.Module) -> Criterion:
        vocabulary = pipeline.writes()
        if vocabulary is None or not isinstance(model, Generator) or not isinstance(model.head, Categorical):
            raise ConfigError(
                "training.objective: minimum_risk needs a task that writes text for a source, with a model "
                "that does not copy words; leave it out"
            )
        return Risk(self, model, vocabulary)


class Risk(Criterion):
    """The minimum-risk loss of a model."""

    model: Generator

    def __init__(self, settings: MinimumRisk, model: Generator, vocabulary: Vocabulary) -> None:
        super().__init__(model)
        self.settings = settings
        self.vocabulary = vocabulary
        self.metric = settings.metric()
        self._writer = mirror(model)  # generates candidates without dropout
        self._banned = (PAD, UNK, SOS, *range(len(vocabulary), len(model.head.bias)))  # type: ignore[arg-type]

    def loss(self, batch: Any, **forced: Any) -> Loss:
        """The expected error, summed over the sources."""
        lengths = batch.target_mask.sum(1).tolist()
        true = [row[: n - 1] for row, n in zip(batch.target_out.tolist(), lengths, strict=True)]
        found = self.candidates(batch)
        if self.settings.reference:
            found = [unique([reference, *others]) for reference, others in zip(true, found, strict=True)]
        return self.risk(batch, true, found)

    def candidates(self, batch: Any) -> list[list[list[int]]]:
        """The distinct candidates of each source, without <eos>."""
        how, writer = self.settings, self._writer
        with torch.no_grad():
            state = writer.start(batch.source, batch.source_mask)
            rows = len(batch.source_mask)
            first = torch.full((rows,), SOS, device=batch.source_mask.device)
            limits = torch.ceil(how.max_ratio * batch.target_mask.sum(1)).long() + how.max_extra
            every: dict[str, Any] = {"eos": EOS, "max_length": limits, "banned": self._banned}
            if how.search == "beam":
                every |= {"width": how.candidates, "nbest": how.candidates}
                drawn = beam_search(writer.step, state, first, **every)
            else:
                chance = open_generator() or torch.random.default_generator
                drawn = sample(writer.step, state, first, count=how.candidates, generator=chance, **every)
        return [unique(texts) for texts in to_lists(drawn, EOS)]

    def risk(self, batch: Any, true: list[list[int]], found: list[list[list[int]]]) -> Loss:
        """The expected error of given candidates."""
        rows = [row for row, texts in enumerate(found) for _ in texts]
        places = [place for texts in found for place in range(len(texts))]
        tokens = [text for texts in found for text in texts]
        weight = self.settings.likelihood
        scored = [*tokens, *true] if weight else tokens
        logp = self.log_probability(batch, [*rows, *range(len(true))] if weight else rows, scored)
        table = logp.new_full((len(found), max(map(len, found))), -torch.inf)
        at = torch.tensor([rows, places], device=logp.device)
        table = table.index_put((at[0], at[1]), logp[: len(tokens)])
        errors = torch.zeros_like(table)
        errors[at[0], at[1]] = torch.from_numpy(self.errors(tokens, [true[row] for row in rows])).to(table)
        total = expected(table, errors, self.settings.sharpness).sum()
        if weight:
            lengths = torch.tensor([len(text) + 1 for text in true], device=logp.device)
            total = total - weight * (logp[len(tokens) :] / lengths).sum()
        return Loss(total, torch.tensor(len(true), device=logp.device))

    def errors(self, tokens: Sequence[list[int]], true: Sequence[list[int]]) -> np.ndarray:
        """Δ of each candidate against its reference, [N] float64."""
        hypotheses, references = (
            [self.vocabulary.decode(text) for text in texts] for texts in (tokens, true)
        )
        value = self.metric.value(self.metric.statistics(hypotheses, references, None))
        if not self.metric.higher_is_better:
            return value
        best = self.metric.value(self.metric.statistics(references, references, None))
        return np.where(best > 0, 1 - value / np.where(best > 0, best, 1), 0.0)

    def log_probability(self, batch: Any, rows: Sequence[int], tokens: Sequence[list[int]]) -> Tensor:
        """log P(y, <eos> | x) of targets for the sources in these rows of the batch, [N] nats."""
        model, device = self.model, batch.source_mask.device
        start = model.start(batch.source, batch.source_mask)  # encode each source once
        pairs = collate_pairs([[PAD]] * len(tokens), list(tokens)).to(device)
        state = take(start, torch.tensor(rows, device=device))
        h = model.decoder(model.embed(pairs.target_in), state)[0]
        mask = pairs.target_mask
        each = model.head(h[mask]).gather(1, pairs.target_out[mask][:, None])[:, 0]
        owner = torch.arange(len(tokens), device=device)[:, None].expand(mask.shape)[mask]
        return each.new_zeros(len(tokens)).index_add(0, owner, each)


def expected(logp: Tensor, errors: Tensor, sharpness: float) -> Tensor:
    """Σ_y Q(y) Δ(y) of each row, of candidates' logp [B, C], -inf for padding, and errors Δ [B, C]."""
    return ((sharpness * logp).softmax(1) * errors).sum(1)


def unique(texts: Sequence[list[int]]) -> list[list[int]]:
    """The distinct texts, in order of first occurrence."""
    return [list(text) for text in dict.fromkeys(map(tuple, texts))]
