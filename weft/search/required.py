"""Words that must come: a grid of beams, one for each number of required tokens that have been written.

A hypothesis of beam c has written c of the C required tokens. It goes on freely within beam c, unless it is
inside a required word, or it writes the next token of a required word and moves to beam c + 1. Only those of
beam C may end. So a step costs C + 1 beams, and what has met much never competes with what has met little.
Where a hypothesis stands among the words is a number: the place in a small automaton, made once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import INFINITY, best_candidates
from weft.search.grouped import Choices, grouped
from weft.search.hypotheses import Hypotheses
from weft.search.normalisation import Normalisation
from weft.search.step import Step, source_limits
from weft.tree import State

MOST_WORDS = 8
"""The automaton knows every subset of the words."""


class Automaton(NamedTuple):
    """Where a hypothesis can stand among the required words; place 0 is the start."""

    token: Tensor  # [P, M] int64, required tokens that may come next
    next: Tensor  # [P, M] int64, the place after each; -1 where there is none
    free: Tensor  # [P] bool, not inside a word
    required: int  # C, required tokens altogether


def automaton(words: Sequence[Sequence[int]], device: torch.device | None = None) -> Automaton:
    """The automaton of these words, each a sequence of tokens, in any order of words.

    Raises:
        ConfigError: an empty word, or too many of them.
    """
    if any(not word for word in words) or len(words) > MOST_WORDS:
        raise ConfigError(
            f"required words: expected at most {MOST_WORDS}, none of them empty, got {len(words)} "
            f"with {sum(not word for word in words)} empty"
        )
    places: dict[tuple[frozenset[int], int, int], int] = {(frozenset(), -1, 0): 0}
    edges: list[list[tuple[int, int]]] = []
    todo = list(places)
    for met, word, offset in todo:  # grows while it is read
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
    """The best hypotheses that hold every word, each found by a beam of `width` in a grid.

    Args:
        step, state, first, eos, max_length, width, nbest, length_penalty, normalisation, banned: as in
            beam.py.
        words: token sequences that each hypothesis must hold, without overlap, in any order.

    Raises:
        ConfigError: more required tokens than max_length leaves room for, or nbest out of its range.

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
    groups = where.required + 1

    def choose(logp: Tensor, base: Tensor, carried: Tensor, twins: Tensor) -> Choices:
        sources, places, vocabulary = logp.shape
        open_logp = logp.clone().view(sources, groups, width, vocabulary)
        open_logp[:, :-1, :, eos] = -INFINITY
        going = base.masked_fill(~where.free[carried], -INFINITY)
        free = best_candidates(open_logp.view(-1, vocabulary), going.flatten(0, 1), 2 * width, banned)
        value, parent, token = (part.view(sources, groups, -1) for part in free)
        kept = carried.gather(2, parent)
        parent = parent + torch.arange(groups, device=logp.device)[:, None] * width

        must, after = where.token[carried], where.next[carried]  # [B, G, W, M]
        own = logp.gather(2, must.view(sources, places, -1)).view(must.shape).double()
        forced = (base[..., None] + own).masked_fill(after < 0, -INFINITY)
        place = torch.arange(places, device=logp.device).view(groups, width, 1).expand_as(must)
        parts = [
            torch.cat([mine, _from_below(part.flatten(2), empty)], 2)
            for mine, part, empty in (
                (value, forced, -INFINITY),
                (parent, place, 0),
                (token, must, 0),
                (kept, after.clamp(min=0), 0),
            )
        ]
        parts[0] = parts[0].masked_fill(_repeated(parts, twins), -INFINITY)
        order = parts[0].sort(dim=2, descending=True, stable=True).indices[:, :, : 2 * width]
        return Choices(*(part.gather(2, order) for part in parts))

    begin = torch.zeros(groups, dtype=torch.bool, device=first.device)
    may_end = begin.clone()
    begin[0], may_end[-1] = True, True
    return grouped(
        step,
        state,
        first,
        choose,
        begin=begin,
        may_end=may_end,
        size=width,
        eos=eos,
        max_length=limits,
        nbest=nbest,
        length_penalty=length_penalty,
        normalisation=normalisation,
    )


def _from_below(part: Tensor, empty: float) -> Tensor:
    """What group c offers to group c + 1; nothing comes to the first."""
    return torch.cat([torch.full_like(part[:, :1], empty), part[:, :-1]], 1)


def _repeated(parts: Sequence[Tensor], twins: Tensor) -> Tensor:
    """Choices [B, G, n] that write the same tokens as an earlier one and come to the same place.

    A word that the text holds twice can be met by either, so that two ways lead to one hypothesis.
    """
    value, parent, token, place = parts
    prefix = twins[:, None].expand(-1, parent.shape[1], -1).gather(2, parent)
    same = (value > -INFINITY)[:, :, None]
    for part in (prefix, token, place):
        same = same & (part[..., None] == part[:, :, None])
    return same.tril(-1).any(3)
