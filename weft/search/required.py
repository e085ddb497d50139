"""Required words: a grid of beams, one for each number of required tokens that have been written.

A hypothesis of beam c has written c of the C required tokens. Unless it is inside a required word, it may
write any token and stay in beam c; or it writes the next token of a required word and moves to beam c + 1.
Only those of beam C may end. So a step costs C + 1 beams, and hypotheses compete only with those that have
written as many required tokens. The progress of a hypothesis is one number: its state in a small automaton
that is built once.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import INFINITY, best_candidates
from weft.search.grouped import Choices, GroupSettings, grouped
from weft.search.hypotheses import Hypotheses, norms_for
from weft.search.offered import Normalisation
from weft.search.step import Step, source_limits
from weft.tree import State

MOST_WORDS = 8
"""The automaton has a state for every subset of the words, so their number is limited."""


class Automaton(NamedTuple):
    """The states of a hypothesis with respect to the required words; state 0 is the start."""

    token: Tensor  # [P, M] int64, required tokens that may come next
    next: Tensor  # [P, M] int64, the state after each; -1 for none
    free: Tensor  # [P] bool, not inside a word
    required: int  # C, required tokens altogether


def automaton(words: Sequence[Sequence[int]], device: torch.device | None = None) -> Automaton:
    """The automaton of these words, each a sequence of tokens, in any order of words."""
    if any(not word for word in words) or len(words) > MOST_WORDS:
        raise ConfigError(
            f"required words: expected at most {MOST_WORDS}, none of them empty, got {len(words)} "
            f"with {sum(not word for word in words)} empty"
        )
    places: dict[tuple[frozenset[int], int, int], int] = {(frozenset(), -1, 0): 0}
    edges: list[list[tuple[int, int]]] = []
    todo = list(places)
    for met, word, offset in todo:  # grows during the loop
        if word >= 0:
            following = [(word, offset)]
        else:
            following = [(other, 0) for other in range(len(words)) if other not in met]
        own: list[tuple[int, int]] = []
        for other, at in following:
            whole = at + 1 == len(words[other])
            place = (met | {other}, -1, 0) if whole else (met, other, at + 1)
            if place not in places:
                places[place] = len(places)
                todo.append(place)
            own.append((words[other][at], places[place]))
        edges.append(own)
    most = max(1, len(words))
    filled = [own + [(0, -1)] * (most - len(own)) for own in edges]
    table = torch.tensor(filled, device=device)  # [P, M, 2]
    free = torch.tensor([word < 0 for _, word, _ in places], device=device)
    return Automaton(table[..., 0], table[..., 1], free, sum(map(len, words)))


def required(
    step: Step,
    state: State,
    first: Tensor,
    *,
    words: Sequence[Sequence[int]],
    eos: int,
    max_length: int | Tensor,
    width: int,
    nbest: int = 1,
    length_penalty: float = 1.0,
    normalisation: Normalisation = "length",
    banned: Sequence[int] = (),
) -> Hypotheses:
    """The best hypotheses that contain every word, found by a grid of beams of `width`.

    Source: Hokamp & Liu 2017, algorithm 1 (grid beam search).
    """
    if not 1 <= nbest <= width:
        raise ConfigError(f"nbest: expected 1 to {width} (the beam width), got {nbest}")
    where = automaton(words, first.device)
    limits = source_limits(max_length, first)
    if len(limits) and int(limits.min()) <= where.required:
        raise ConfigError(
            f"required words: they take {where.required} tokens and the end 1, but a translation may have "
            f"{int(limits.min())}; require less, or raise max_extra"
        )
    begin = torch.zeros(where.required + 1, dtype=torch.bool, device=first.device)
    may_end = begin.clone()
    begin[0], may_end[-1] = True, True
    norm = norms_for(limits, length_penalty, normalisation)
    choose = partial(_choose, where=where, width=width, eos=eos, banned=banned)
    return grouped(step, state, first, choose, GroupSettings(eos, nbest, width, begin, may_end, limits, norm))


def _choose(
    logp: Tensor,
    base: Tensor,
    carried: Tensor,
    twins: Tensor,
    *,
    where: Automaton,
    width: int,
    eos: int,
    banned: Sequence[int],
) -> Choices:
    """The best 2W of each beam: free continuations, and required tokens after the beam below."""
    free = _free(logp, base, carried, where, eos=eos, banned=banned)
    forced = _forced(logp, base, carried, where)
    parts = [
        torch.cat([own, _from_below(other.flatten(2), empty)], 2)
        for own, other, empty in zip(free, forced, (-INFINITY, 0, 0, 0), strict=True)
    ]
    parts[0] = parts[0].masked_fill(_repeated(parts, twins), -INFINITY)
    order = parts[0].sort(dim=2, descending=True, stable=True).indices[:, :, : 2 * width]
    return Choices(*(part.gather(2, order) for part in parts))


def _free(
    logp: Tensor, base: Tensor, carried: Tensor, where: Automaton, *, eos: int, banned: Sequence[int]
) -> Choices:
    """Any token after hypotheses that are not inside a required word; eos only in the last beam."""
    (sources, groups, width), vocabulary = base.shape, logp.shape[2]
    open_logp = logp.clone().view(sources, groups, width, vocabulary)
    open_logp[:, :-1, :, eos] = -INFINITY
    outside = base.masked_fill(~where.free[carried], -INFINITY)
    found = best_candidates(open_logp.view(-1, vocabulary), outside.flatten(0, 1), 2 * width, banned)
    value, parent, token = (part.view(sources, groups, -1) for part in found)
    kept = carried.gather(2, parent)
    return Choices(value, parent + torch.arange(groups, device=logp.device)[:, None] * width, token, kept)


def _forced(logp: Tensor, base: Tensor, carried: Tensor, where: Automaton) -> Choices:
    """The next tokens of required words, M of each hypothesis: every part [B, G, W, M]."""
    must, after = where.token[carried], where.next[carried]
    own = logp.gather(2, must.view(len(logp), logp.shape[1], -1)).view(must.shape).double()
    value = (base[..., None] + own).masked_fill(after < 0, -INFINITY)
    slot = torch.arange(logp.shape[1], device=logp.device).view(*base.shape[1:], 1).expand_as(must)
    return Choices(value, slot, must, after.clamp(min=0))


def _from_below(part: Tensor, empty: float) -> Tensor:
    """Shift the choices of group c to group c + 1; the first group gets none."""
    return torch.cat([torch.full_like(part[:, :1], empty), part[:, :-1]], 1)


def _repeated(parts: Sequence[Tensor], twins: Tensor) -> Tensor:
    """Choices [B, G, n] with the same tokens and the same state as an earlier one.

    Where a hypothesis contains a required word twice, either can count, so it may be found in two ways.
    """
    value, parent, token, place = parts
    prefix = twins[:, None].expand(-1, parent.shape[1], -1).gather(2, parent)
    same = (value > -INFINITY)[:, :, None]
    for part in (prefix, token, place):
        same = same & (part[..., None] == part[:, :, None])
    return same.tril(-1).any(3)
