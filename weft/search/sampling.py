"""Sampling: each token is drawn from the model's distribution, or from a narrowed form of it.

Read next: filters.py.
"""

from collections.abc import Sequence

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
        step, state, first, eos, max_length, banned: as in greedy_search.
        temperature: above 0; below 1 sharper, above 1 flatter.
        top_k: only the k most probable tokens.
        top_p: only the smallest set of most probable tokens that holds this probability.
        count: N, samples per source.
        generator: the source of randomness; the same seed gives the same samples.

    Returns:
        Hypotheses in the order drawn: sorting would make the first one more probable than a sample
        is. logp and score are the model's own, before narrowing.

    Raises:
        ConfigError: a setting out of its range, or the step gives NaN.
    """
    if count < 1:
        raise ConfigError(f"count: expected at least 1, got {count}")
    limits = source_limits(max_length, first)
    narrow = SamplingRule(
        temperature, -1 if top_k == 0 else top_k or 0, 1.0 if top_p is None else top_p, generator
    )
    asked = SearchRequest(first, limits, eos, banned, count, count, count, draw=narrow)
    found = whole_search(step, state, asked)
    if found is not None:
        return found
    num_rows = len(first) * count

    def choose(logp: Tensor, rows: Tensor, time: int) -> tuple[Tensor, Tensor]:
        check_best(logp.amax(1), logp.new_zeros(len(rows)), time)
        # In double: a cumulative sum in single precision loses tokens rarer than 6e-8.
        kept = filters.temperature(filters.ban(logp.double(), banned), temperature)
        if bool((kept.amax(1) == -float("inf")).any()):
            raise no_token(int(rows[kept.amax(1).argmin()]) // count)
        kept = kept if top_k is None else filters.top_k(kept, top_k)
        kept = kept if top_p is None else filters.top_p(kept, top_p)
        uniform = torch.rand(num_rows, 1, generator=generator, device=generator.device, dtype=torch.float64)
        token = invert(kept.softmax(1), uniform.to(rows.device)[rows])
        return token, logp.gather(1, token[:, None])[:, 0]

    return rollout(step, state, first, eos=eos, max_length=limits, count=count, choose=choose, banned=banned)
