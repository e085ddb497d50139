"""A beam divided into groups: each has its own places, its own ends, and its own idea of a good candidate.

What the groups are is decided by who calls: diverse.py (they keep apart) and required.py (they have met more
and more of what is required). A hypothesis is a place of its source, 0 to G K - 1, group by group. A group
is done when K of its hypotheses have ended (Kasai et al. 2022, as in beam.py); a source, when all its groups
that may end are done, when its n best can no longer change, or at max_length.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.search.candidates import INFINITY
from weft.search.finished import Added, Finished, append_cut, merge_ended, nothing_finished, read_back
from weft.search.hypotheses import Hypotheses, distinct
from weft.search.normalisation import Normalisation, norms
from weft.search.step import Step, check_best, checked_step, no_token, source_limits
from weft.tree import State, fan, keep_sources, reorder, take


class Choices(NamedTuple):
    """What each group might go on with, in the order in which it wants it; -inf is no choice."""

    value: Tensor  # [B, G, n] float64 cumulative log-probability
    parent: Tensor  # [B, G, n] int64, the place continued
    token: Tensor  # [B, G, n] int64
    carried: Tensor  # [B, G, n] int64, what the chooser wants to know of a hypothesis next time


Choose = Callable[[Tensor, Tensor, Tensor, Tensor], Choices]
"""logp [B, G K, V], cumulative logp [B, G, K] float64, what is carried [B, G, K] and twins [B, G K] give the
choices. Places with the same number in `twins` have written the same tokens."""


@torch.no_grad()
def grouped(
    step: Step,
    state: State,
    first: Tensor,
    choose: Choose,
    *,
    begin: Tensor,
    may_end: Tensor,
    size: int,
    eos: int,
    max_length: int | Tensor,
    nbest: int,
    length_penalty: float,
    normalisation: Normalisation,
) -> Hypotheses:
    """Search with groups; see beam.py for what is alike.

    Args:
        step, state, first, eos, max_length, nbest, length_penalty, normalisation: as in beam.py.
        choose: see Choose; n is at least 2 K, or eos might leave places empty.
        begin: [G] bool, groups with a hypothesis at the start.
        may_end: [G] bool, groups whose hypotheses are results; only they may choose eos.
        size: K, hypotheses a group.
    """
    limits, groups = source_limits(max_length, first), len(begin)
    longest, width = int(limits.max()) if len(limits) else 0, groups * size
    norm_of = norms(longest, length_penalty, normalisation).to(first.device)
    source, limit = torch.arange(len(first), device=first.device), limits
    table = nothing_finished(len(first) * groups, min(nbest, size), first.device)
    result = table
    ended = torch.zeros(len(first), groups, dtype=torch.int64, device=first.device)
    base = torch.full((len(first), groups, size), -INFINITY, dtype=torch.float64, device=first.device)
    base[:, begin, 0] = 0.0
    carried = torch.zeros_like(base, dtype=torch.int64)
    twins = torch.zeros(len(first), width, dtype=torch.int64, device=first.device)
    state, token, steps, time = fan(state, width), first.repeat_interleave(width), list[Added](), 0

    while len(source):
        time += 1
        logp, state = checked_step(step, token, state, eos)
        found = choose(logp.view(len(source), width, -1), base, carried, twins)
        check_best(found.value.flatten(1).amax(1), base.flatten(1).amax(1), time)
        is_eos = found.token == eos
        rank = torch.arange(found.token.shape[2], device=first.device)
        ending = is_eos & (found.value > -INFINITY) & (rank < size) & may_end[:, None]
        value = found.value.masked_fill(~ending, -INFINITY).flatten(0, 1)
        written = torch.full_like(value, time - 1, dtype=torch.int64)
        table = merge_ended(
            table, Finished(value / norm_of[time], value, written, found.parent.flatten(0, 1))
        )
        ended = ended + ending.sum(2)

        order = is_eos.to(torch.uint8).sort(dim=2, stable=True).indices[:, :, :size]
        base = found.value.masked_fill(is_eos, -INFINITY).gather(2, order)
        full = (ended >= size) & (base.amax(2) / norm_of[time] <= table.score[:, 0].view_as(ended))
        base = base.masked_fill(full[..., None], -INFINITY)
        carried = found.carried.gather(2, order)
        parent, token = (part.gather(2, order).flatten(1) for part in (found.parent, found.token))
        steps.append(Added(source, parent, token))
        prefix = twins.gather(1, parent) * logp.shape[1] + token
        twins = (prefix[:, :, None] == prefix[:, None]).to(torch.uint8).argmax(2)  # the first that is equal

        bound = base.flatten(1).amax(1) / norm_of[limit]
        worst = table.score[:, -1].view(-1, groups)[:, may_end].amin(1)
        done = (bound <= worst) | full[:, may_end].all(1)
        at_limit = limit == time
        if bool(at_limit.any()):
            value = base.masked_fill(~(at_limit[:, None, None] & may_end[:, None]), -INFINITY).flatten(0, 1)
            slots = torch.arange(width, device=first.device).view(groups, size).repeat(len(source), 1)
            cut = Finished(value / norm_of[time], value, torch.full_like(slots, time), slots)
            table, done = append_cut(table, cut), done | at_limit
        if bool(done.any()):
            rows = (source[:, None] * groups + torch.arange(groups, device=first.device)).flatten()
            result = Finished(*(old.index_copy(0, rows, new) for old, new in zip(result, table, strict=True)))
            keep = (~done).nonzero().squeeze(1)
            state = keep_sources(state, keep, width)
            kept = (keep[:, None] * groups + torch.arange(groups, device=first.device)).flatten()
            table = take(table, kept)
            source, limit, ended, base, carried, twins, parent, token = take(
                (source, limit, ended, base, carried, twins, parent, token), keep
            )
        rows = parent + torch.arange(len(source), device=first.device)[:, None] * width
        state, token = reorder(state, rows.flatten()), token.flatten()

    return _gather(result, limits, groups, nbest, steps, eos)


def _gather(
    result: Finished, limits: Tensor, groups: int, nbest: int, steps: list[Added], eos: int
) -> Hypotheses:
    """The n best different hypotheses of all groups."""
    result = Finished(*(part.view(len(limits), -1) for part in result))
    there = result.score > -INFINITY
    if len(limits) and not bool(there.any(1).all()):
        raise no_token(int(there.any(1).int().argmin()))
    lengths = (result.written + (result.written < limits[:, None])) * there
    found = Hypotheses(read_back(result, steps, eos), lengths, result.logp, result.score)
    return distinct(found, nbest, eos)
