"""Greedy search: the most probable token at every step.

`rollout` is what it shares with sampling.py: one token after another, each chosen from the distribution of
its own row. Read next: sampling.py, beam.py (a beam of one is greedy).
"""

from collections.abc import Callable, Sequence
from numbers import Real

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import best_tokens
from weft.search.compiled import whole_search
from weft.search.hypotheses import Hypotheses
from weft.search.step import (
    COMPACT_SHARE,
    Rule,
    SearchRequest,
    Step,
    check_best,
    checked_step,
    no_token,
    ruled,
    source_limits,
)
from weft.tree import State, fan, keep_sources

Choose = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""Maps logp [n, V], row numbers [n] and the time to each row's token [n] and its log-probability [n]."""


def rollout(step: Step, state: State, asked: SearchRequest, choose: Choose) -> Hypotheses:
    """Write `asked.width` rows per source until each has chosen eos or reached its limit; then it leaves."""
    found = whole_search(step, state, asked)
    if found is not None:
        return found
    first, count, eos = asked.first, asked.width, asked.eos
    if not isinstance(eos, Real):
        raise ConfigError(f"eos: expected a token of the model's vocabulary, got {eos!r}")
    step, state = ruled(step, state, asked.rules)
    limits = asked.limits.repeat_interleave(count)
    longest = int(limits.max()) if len(limits) else 0
    rows = torch.arange(len(limits), device=first.device)
    tokens = torch.full((len(limits), longest), eos, dtype=torch.int64, device=first.device)
    total = torch.zeros(len(limits), dtype=torch.float64, device=first.device)
    lengths = torch.zeros_like(rows)
    ended = torch.zeros_like(rows, dtype=torch.bool)  # of the rows still in the batch
    state, token, time = fan(state, count), first.repeat_interleave(count), 0

    while len(rows):
        time += 1
        logp, state = checked_step(step, token, state, eos, asked.banned)
        token, chosen = choose(logp, rows, time)
        token = token.masked_fill(ended, eos)
        tokens[rows, time - 1] = token
        total[rows] += chosen.double().masked_fill(ended, 0.0)
        lengths[rows] += ~ended
        ended = ended | (token == eos) | (limits[rows] <= time)
        done = ended.view(-1, count).all(1)
        num_done = int(done.sum())
        if num_done == len(done):
            break
        if num_done >= COMPACT_SHARE * len(done):
            keep = (~done).nonzero().squeeze(1)
            state = keep_sources(state, keep, count)
            rows, token, ended = (part.view(-1, count)[keep].flatten() for part in (rows, token, ended))

    shape = (len(first), count)
    total, lengths, tokens = total.view(shape), lengths.view(shape), tokens.view(*shape, longest)
    return Hypotheses(tokens[..., :time], lengths, total, total.clone())


@torch.no_grad()
def greedy_search(
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    banned: Sequence[int] = (),
    rules: Sequence[Rule] = (),
    recorded: bool = False,
) -> Hypotheses:
    """The most probable token at every step; ties go to the lowest id. Deterministic.

    Args:
        step: maps token [N] and state to logp [N, V] and state (step.py).
        state: the state before the first step, one row per source.
        first: [B] int64, the token fed first, usually sos.
        eos: the token that ends a hypothesis.
        max_length: maximum number of tokens, eos counted; one number, or [B] for a limit per source.
        banned: tokens never chosen.
        rules: for the next token, given those so far (step.py).
        recorded: record the steps as CUDA graphs and replay them; a CPU takes the same steps.

    Returns:
        Hypotheses with N = 1, in the order of the sources; the score is logp.

    Raises:
        ConfigError: the step gives NaN, or no possible token.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = greedy_search(
        ...     lambda token, state: (bigram[token], state), None, torch.tensor([0]), eos=2, max_length=3,
        ... )
        >>> found.tokens.tolist(), found.lengths.tolist()  # [B, 1, T], [B, 1]
        ([[[1, 0, 1]]], [[3]])
    """

    def choose(logp: Tensor, rows: Tensor, time: int) -> tuple[Tensor, Tensor]:
        value, token = best_tokens(logp, banned)
        check_best(value, torch.zeros_like(value), time)
        if bool((value == -float("inf")).any()):
            raise no_token(int(rows[value.argmin()]))
        return token, value

    limits = source_limits(max_length, first, state)
    asked = SearchRequest(first, limits, eos, banned, rules=rules, recorded=recorded)
    return rollout(step, state, asked, choose)
