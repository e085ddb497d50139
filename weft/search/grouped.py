"""A beam divided into groups: each has its own slots, finished hypotheses and choice of candidates.

The caller defines the groups: in diverse.py they avoid each other's tokens; in required.py they differ in how
many of the required tokens they have written. A hypothesis is a slot of its source, 0 to G K - 1, group
by group. A group is done when K of its hypotheses have ended (Kasai et al. 2022, as in beam.py); a source is
done when all its groups that may end are done, when its n best can no longer change, or at max_length.

Read beam.py first; the loop is the same.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.search.beams import (
    BeamAdditions,
    FinishedHypotheses,
    append_cut,
    as_hypotheses,
    merge_ended,
    nothing_finished,
    write,
)
from weft.search.candidates import INFINITY
from weft.search.hypotheses import Hypotheses, distinct
from weft.search.step import Step, check_best, checked_step
from weft.tree import State, fan, keep_sources, reorder, take


class Choices(NamedTuple):
    """The candidates of each group, best first; value -inf means no candidate."""

    value: Tensor  # [B, G, n] float64 cumulative log-probability
    parent: Tensor  # [B, G, n] int64, the slot continued
    token: Tensor  # [B, G, n] int64
    carried: Tensor  # [B, G, n] int64, the state of `Choose` for each hypothesis


Choose = Callable[[Tensor, Tensor, Tensor, Tensor], Choices]
"""Maps logp [B, G K, V], cumulative logp [B, G, K] float64, carried [B, G, K] and twins [B, G K] to choices.
Slots with the same number in `twins` have written the same tokens."""


class Groups(NamedTuple):
    """The B sources still being searched, with the G groups of each."""

    source: Tensor  # [B] int64, the number of the source
    limit: Tensor  # [B] int64, its max_length
    num_finished: Tensor  # [B, G] int64
    logp: Tensor  # [B, G, K] float64, cumulative; -inf where there is no hypothesis
    carried: Tensor  # [B, G, K] int64
    twins: Tensor  # [B, G K] int64, the first slot with the same tokens
    parent: Tensor  # [B, G K] int64
    token: Tensor  # [B, G K] int64


class GroupSettings(NamedTuple):
    """What stays the same during a search with G groups of K hypotheses."""

    eos: int  # the token that ends a hypothesis
    nbest: int  # hypotheses returned per source
    size: int  # K
    begin: Tensor  # [G] bool, groups with a hypothesis at the start
    may_end: Tensor  # [G] bool, groups whose hypotheses are results; only they may choose eos
    limits: Tensor  # [B] int64, max_length of each source
    norm: Tensor  # [longest + 1] float64, norm(length)


@torch.no_grad()
def grouped(step: Step, state: State, first: Tensor, choose: Choose, settings: GroupSettings) -> Hypotheses:
    """Search with groups: the n best different hypotheses of all groups."""
    ends = nothing_finished(
        len(first) * len(settings.begin), min(settings.nbest, settings.size), first.device
    )
    ends, steps = _search(step, state, _start(first, settings), ends, choose, settings)
    joined = FinishedHypotheses(*(part.view(len(first), -1) for part in ends))
    found = as_hypotheses(joined, settings.limits, steps, settings.eos)
    return distinct(found, settings.nbest, settings.eos)


def _search(
    step: Step,
    state: State,
    groups: Groups,
    table: FinishedHypotheses,
    choose: Choose,
    settings: GroupSettings,
) -> tuple[FinishedHypotheses, list[BeamAdditions]]:
    """The loop over time; returns the finished hypotheses [B G, N] and what each step added."""
    width, norm = groups.token.shape[1], settings.norm
    state, result, steps, time = fan(state, width), table, list[BeamAdditions](), 0

    while len(groups.source):
        time += 1
        logp, state = checked_step(step, groups.token.flatten(), state, settings.eos)
        found = choose(logp.view(len(groups.source), width, -1), groups.logp, groups.carried, groups.twins)
        check_best(found.value.flatten(1).amax(1), groups.logp.flatten(1).amax(1), time)

        ending = _ending(found, settings)
        table = merge_ended(table, _ended(found, ending, time, norm))
        groups = groups._replace(num_finished=groups.num_finished + ending.sum(2))
        groups, full = _extend(groups, found, table, settings, norm[time], logp.shape[1])
        steps.append(BeamAdditions(groups.source, groups.parent, groups.token))

        done = _done(groups, full, table, settings)
        at_limit = groups.limit == time
        if bool(at_limit.any()):
            table, done = append_cut(table, _cut(groups, at_limit, time, settings)), done | at_limit
        if bool(done.any()):
            result = write(result, _rows(groups.source, settings), table)
            keep = (~done).nonzero().squeeze(1)
            state, table = keep_sources(state, keep, width), take(table, _rows(keep, settings))
            groups = take(groups, keep)
        rows = groups.parent + torch.arange(len(groups.source), device=norm.device)[:, None] * width
        state = reorder(state, rows.flatten())

    return result, steps


def _start(first: Tensor, settings: GroupSettings) -> Groups:
    """Every source with one empty hypothesis in each group that begins."""
    sources, groups, size = len(first), len(settings.begin), settings.size
    logp = first.new_full((sources, groups, size), -INFINITY, dtype=torch.float64)
    logp[:, settings.begin, 0] = 0.0
    zero = first.new_zeros(sources, groups * size)
    return Groups(
        source=torch.arange(sources, device=first.device),
        limit=settings.limits,
        num_finished=first.new_zeros(sources, groups),
        logp=logp,
        carried=zero.view(logp.shape),
        twins=zero,
        parent=zero,
        token=first[:, None].expand_as(zero),
    )


def _ending(found: Choices, settings: GroupSettings) -> Tensor:
    """Which candidates have finished: those with eos among the first K of a group that may end."""
    rank = torch.arange(found.token.shape[2], device=found.token.device)
    is_eos = (found.token == settings.eos) & (found.value > -INFINITY)
    return is_eos & (rank < settings.size) & settings.may_end[:, None]


def _ended(found: Choices, ending: Tensor, time: int, norm: Tensor) -> FinishedHypotheses:
    """The candidates that have finished, [B G, n]."""
    value = found.value.masked_fill(~ending, -INFINITY).flatten(0, 1)
    written = torch.full_like(value, time - 1, dtype=torch.int64)
    return FinishedHypotheses(value / norm[time], value, written, found.parent.flatten(0, 1))


def _extend(
    groups: Groups,
    found: Choices,
    table: FinishedHypotheses,
    settings: GroupSettings,
    norm: Tensor,
    vocabulary: int,
) -> tuple[Groups, Tensor]:
    """The next K hypotheses of each group, the first without eos; and which are done [B, G], now empty."""
    is_eos = found.token == settings.eos
    order = is_eos.to(torch.uint8).sort(dim=2, stable=True).indices[:, :, : settings.size]
    logp = found.value.masked_fill(is_eos, -INFINITY).gather(2, order)
    best = table.score[:, 0].view_as(groups.num_finished)
    full = (groups.num_finished >= settings.size) & (logp.amax(2) / norm <= best)
    logp = logp.masked_fill(full[..., None], -INFINITY)
    parent, token = (part.gather(2, order).flatten(1) for part in (found.parent, found.token))
    prefix = groups.twins.gather(1, parent) * vocabulary + token
    twins = (prefix[:, :, None] == prefix[:, None]).to(torch.uint8).argmax(2)  # the first equal one
    carried = found.carried.gather(2, order)
    return groups._replace(logp=logp, carried=carried, twins=twins, parent=parent, token=token), full


def _done(groups: Groups, full: Tensor, table: FinishedHypotheses, settings: GroupSettings) -> Tensor:
    """Which sources are done before their max_length, [B] bool."""
    bound = groups.logp.flatten(1).amax(1) / settings.norm[groups.limit]
    worst = table.score[:, -1].view(-1, len(settings.may_end))[:, settings.may_end].amin(1)
    return (bound <= worst) | full[:, settings.may_end].all(1)


def _cut(groups: Groups, at_limit: Tensor, time: int, settings: GroupSettings) -> FinishedHypotheses:
    """The active hypotheses of sources at their max_length, in groups that may end, [B G, K]."""
    shown = at_limit[:, None, None] & settings.may_end[:, None]
    value = groups.logp.masked_fill(~shown, -INFINITY).flatten(0, 1)
    slots = torch.arange(groups.token.shape[1], device=value.device).view(-1, settings.size)
    slots = slots.repeat(len(groups.source), 1)
    return FinishedHypotheses(value / settings.norm[time], value, torch.full_like(slots, time), slots)


def _rows(sources: Tensor, settings: GroupSettings) -> Tensor:
    """The rows of these sources in a table of [B G, N]."""
    groups = torch.arange(len(settings.may_end), device=sources.device)
    return (sources[:, None] * len(groups) + groups).flatten()
