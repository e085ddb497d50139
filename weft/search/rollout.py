"""One token after another, each chosen from the distribution of its own row: greedy and sampling.

Sources leave the batch when all their rows have ended. Read next: greedy.py, sampling.py.
"""

from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.compiled import whole_search
from weft.search.hypotheses import Hypotheses
from weft.search.rules import SearchRequest, ruled
from weft.search.step import COMPACT_SHARE, Step, checked_step
from weft.tree import State, fan, keep_sources

Choose = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""Maps logp [n, V], row numbers [n] and the time to each row's token [n] and its log-probability [n]."""


def rollout(step: Step, state: State, asked: SearchRequest, choose: Choose) -> Hypotheses:
    """Write `asked.width` rows per source until each has chosen eos or reached its limit."""
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
