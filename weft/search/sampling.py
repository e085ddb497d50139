"""Sampling: each token is drawn from the model's distribution, or from a narrowed form of it.

`search` is the search that settings ask for, greedy, sampling or a beam. Read next: filters.py; offered.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from weft.search.beam import beam_search
from weft.search.filters import invert, narrow
from weft.search.greedy import greedy_search, rollout
from weft.search.hypotheses import Hypotheses
from weft.search.offered import Narrowing, SearchSettings
from weft.search.step import Rule, SamplingRule, SearchRequest, Step, check_best, no_token, source_limits
from weft.shapes import check_count
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
    min_p: float = 0.0,
    typical_p: float = 1.0,
    count: int = 1,
    banned: Sequence[int] = (),
    rules: Sequence[Rule] = (),
    recorded: bool = False,
    generator: torch.Generator | None = None,
) -> Hypotheses:
    """Draw `count` hypotheses per source, from what filters.narrow leaves.

    One uniform number is drawn for each row of the whole batch at each step, ended rows too, so that a
    row's tokens depend on the seed and its place in the batch, not on when its neighbours end.

    Args:
        step: maps token [N] and state to logp [N, V] and state (step.py).
        state: the state before the first step, one row per source.
        first: [B] int64, the token fed first, usually sos.
        eos, max_length, banned, rules, recorded: as in greedy_search.
        temperature: above 0; below 1 sharper, above 1 flatter.
        top_k: only the k most probable tokens.
        top_p: only the smallest set of most probable tokens that holds this probability.
        min_p: only tokens at least this times as probable as the most probable one.
        typical_p: only the smallest set of tokens of expected surprise that holds this probability.
        count: N, samples per source.
        generator: the source of randomness; the same seed gives the same samples. None takes torch's own,
            which torch.manual_seed sets.

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
    narrow: dict[str, Any] = {"temperature": temperature, "min_p": min_p, "typical_p": typical_p}
    how = Narrowing(top_k=top_k or 0, top_p=1.0 if top_p is None else top_p, **narrow)
    more: dict[str, Any] = {"eos": eos, "max_length": max_length, "banned": banned, "rules": rules}
    source = torch.default_generator if generator is None else generator
    return draw(step, state, first, how, count=count, recorded=recorded, generator=source, **more)


@torch.no_grad()
def draw(
    step: Step,
    state: State,
    first: Tensor,
    how: Narrowing,
    *,
    eos: int,
    max_length: int | Tensor,
    count: int,
    banned: Sequence[int],
    rules: Sequence[Rule] = (),
    recorded: bool = False,
    generator: torch.Generator,
) -> Hypotheses:
    """`sample`, from what these settings leave of the distribution."""
    check_count("count", count)
    how, limits, rows_in_all = how.narrowing(), source_limits(max_length, first, state), len(first) * count
    asked = SearchRequest(
        first, limits, eos, banned, count, count, count, draw=SamplingRule(how, generator), rules=rules,
        recorded=recorded,
    )  # fmt: skip

    def choose(logp: Tensor, rows: Tensor, time: int) -> tuple[Tensor, Tensor]:
        check_best(logp.amax(1), logp.new_zeros(len(rows)), time)
        # In double: a cumulative sum in single precision loses tokens rarer than 6e-8.
        kept = narrow(logp.double(), how, banned)
        if bool((kept.amax(1) == -float("inf")).any()):
            raise no_token(int(rows[kept.amax(1).argmin()]) // count)
        device = generator.device
        uniform = torch.rand((rows_in_all, 1), generator=generator, device=device, dtype=torch.float64)
        token = invert(kept.softmax(1), uniform.to(rows.device)[rows])
        return token, logp.gather(1, token[:, None])[:, 0]

    return rollout(step, state, asked, choose)


def search(
    settings: SearchSettings,
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    banned: Sequence[int],
    asked: Sequence[Rule] = (),
    chance: torch.Generator | None = None,
    **beams: Any,
) -> Hypotheses:
    """The texts that these settings find; `asked` are rules, and `beams` is what only a beam takes."""
    plain: dict[str, Any] = {
        "eos": eos, "max_length": max_length, "banned": banned, "rules": asked,
        "recorded": settings.cuda_graphs,
    }  # fmt: skip
    if settings.search == "greedy":
        return greedy_search(step, state, first, **plain)
    if settings.search == "beam":
        width, penalty = settings.beam, settings.length_penalty
        plain |= {"width": width, "nbest": settings.nbest, "length_penalty": penalty, **beams}
        return beam_search(step, state, first, **plain)
    generator = chance or torch.Generator(first.device).manual_seed(settings.seed)
    return draw(step, state, first, settings, count=settings.width(), generator=generator, **plain)
