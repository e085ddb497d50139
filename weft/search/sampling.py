"""Sampling: each token is drawn from the model's distribution, or from a narrowed form of it.

Read next: filters.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search import filters
from weft.search.captured import whole_search
from weft.search.compiled import SamplingRule, SearchRequest
from weft.search.filters import invert
from weft.search.hypotheses import Hypotheses
from weft.search.rollout import rollout
from weft.search.step import Step, check_best, no_token, source_limits
from weft.tree import State


@torch.no_grad()
def sample(
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    count: int = 1,
    banned: Sequence[int] = (),
    generator: torch.Generator,
) -> Hypotheses:
    """Draw `count` hypotheses per source.

    The distribution is narrowed in this order: banned tokens, temperature, top_k, top_p. One
    uniform number is drawn for each row of the whole batch at each step, ended rows too, so that a
    row's tokens depend on the seed and its place in the batch, not on when its neighbours end.

    Args:
        step: maps token [N] and state to logp [N, V] and state (step.py).
        state: the state before the first step, one row per source.
        first: [B] int64, the token fed first, usually sos.
        eos, max_length, banned: as in greedy_search.
        temperature: above 0; below 1 sharper, above 1 flatter.
        top_k: only the k most probable tokens.
        top_p: only the smallest set of most probable tokens that holds this probability.
        count: N, samples per source.
        generator: the source of randomness; the same seed gives the same samples.

    Returns:
        Hypotheses [B, N] in the order drawn: sorting would make the first one more probable than a
        sample is. logp and score are the model's own, before narrowing.

    Raises:
        ConfigError: a setting out of its range, or the step gives NaN or no possible token.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = sample(
        ...     lambda token, state: (bigram[token], state), None, torch.tensor([0, 0]), eos=2, max_length=3,
        ...     top_k=1, count=2, generator=torch.Generator(),
        ... )
        >>> found.tokens.tolist()  # [B, N, T]; top_k=1 leaves no choice
        [[[1, 0, 1], [1, 0, 1]], [[1, 0, 1], [1, 0, 1]]]
    """
    if count < 1:
        raise ConfigError(f"count: expected at least 1, got {count}")
    draw = _Draw(temperature, top_k, top_p, banned, count, len(first) * count, generator)
    limits = source_limits(max_length, first)
    asked = SearchRequest(first, limits, eos, banned, count, count, count, draw=draw.rule())
    found = whole_search(step, state, asked)
    if found is not None:
        return found
    return rollout(
        step, state, first, eos=eos, max_length=limits, count=count, choose=draw.choose, banned=banned
    )


class _Draw(NamedTuple):
    temperature: float
    top_k: int | None
    top_p: float | None
    banned: Sequence[int]
    count_per_source: int
    num_rows: int
    generator: torch.Generator

    def rule(self) -> SamplingRule:
        """As a whole search in one program takes it."""
        k = -1 if self.top_k == 0 else self.top_k or 0
        return SamplingRule(self.temperature, k, 1.0 if self.top_p is None else self.top_p, self.generator)

    def choose(self, logp: Tensor, rows: Tensor, time: int) -> tuple[Tensor, Tensor]:
        """A rollout's choice."""
        check_best(logp.amax(1), logp.new_zeros(len(rows)), time)
        # In double: a cumulative sum in single precision loses tokens rarer than 6e-8.
        kept = filters.temperature(filters.ban(logp.double(), self.banned), self.temperature)
        if bool((kept.amax(1) == -float("inf")).any()):
            raise no_token(int(rows[kept.amax(1).argmin()]) // self.count_per_source)
        kept = kept if self.top_k is None else filters.top_k(kept, self.top_k)
        kept = kept if self.top_p is None else filters.top_p(kept, self.top_p)
        size, device = (self.num_rows, 1), self.generator.device
        uniform = torch.rand(size, generator=self.generator, device=device, dtype=torch.float64)
        token = invert(kept.softmax(1), uniform.to(rows.device)[rows])
        return token, logp.gather(1, token[:, None])[:, 0]
