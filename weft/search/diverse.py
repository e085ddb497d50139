"""Diverse beam search: groups choose in turn, and each avoids the tokens that earlier groups chose."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from weft.errors import ConfigError
from weft.search.beam import beam_search
from weft.search.candidates import INFINITY, best_candidates
from weft.search.grouped import Choices, GroupSettings, grouped
from weft.search.hypotheses import Hypotheses, distinct, norms_for
from weft.search.offered import Normalisation
from weft.search.step import Step, source_limits
from weft.tree import State, keep_sources


def diverse_search(
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    width: int,
    groups: int,
    strength: float = 0.5,
    nbest: int = 1,
    length_penalty: float = 1.0,
    normalisation: Normalisation = "length",
    banned: Sequence[int] = (),
) -> Hypotheses:
    """Rank in group g by Theta(y) + logp - lambda * (number of earlier groups' choices of the token).

    The penalty only affects the ranking: sums and scores are the model's own. One group is a beam search.
    With a weak penalty, groups of a confident model may write the same text; each text is returned once. If
    this leaves fewer than `nbest`, a plain beam search of the same width supplies the rest.

    Args:
        step, state, first, eos, max_length, width, nbest, length_penalty, normalisation, banned: as in
            beam.py; the groups share the width.
        groups: G; divides the width.
        strength: lambda, in nats.

    Raises:
        ConfigError: groups do not divide the width, strength is below 0, or nbest is out of its range.

    Source: Vijayakumar et al. 2016, algorithm 1, with Hamming diversity (section 5.1).

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = diverse_search(
        ...     lambda token, state: (bigram[token], state), None, torch.tensor([0]), eos=2,
        ...     max_length=3, width=4, groups=2, nbest=2,
        ... )
        >>> found.score.shape  # [B, N]
        torch.Size([1, 2])
    """
    size = _size(width, groups, strength, nbest)
    limits = source_limits(max_length, first, state)
    every = torch.ones(groups, dtype=torch.bool, device=first.device)
    norm = norms_for(limits, length_penalty, normalisation)
    choose = partial(_choose, size=size, strength=strength, eos=eos, banned=banned)
    found = grouped(step, state, first, choose, GroupSettings(eos, nbest, size, every, every, limits, norm))
    few = (found.lengths == 0).any(1).nonzero().squeeze(1)
    if groups == 1 or not len(few):
        return found
    plain = beam_search(
        step, keep_sources(state, few, 1), first[few], eos=eos, max_length=limits[few], width=width,
        nbest=nbest, length_penalty=length_penalty, normalisation=normalisation, banned=banned,
    )  # fmt: skip
    return _with(found, plain, few, eos)


def _size(width: int, groups: int, strength: float, nbest: int) -> int:
    """Hypotheses per group; checks the settings."""
    if groups < 1 or width % groups:
        raise ConfigError(
            f"diverse: expected a number of groups that divides the beam width {width}, got {groups}"
        )
    if not 0 <= strength < INFINITY:
        raise ConfigError(f"diversity: expected 0 or more nats, got {strength}")
    if not 1 <= nbest <= width:
        raise ConfigError(f"nbest: expected 1 to {width} (the beam width), got {nbest}")
    return width // groups


def _choose(
    logp: Tensor,
    base: Tensor,
    carried: Tensor,
    twins: Tensor,
    *,
    size: int,
    strength: float,
    eos: int,
    banned: Sequence[int],
) -> Choices:
    """The candidates, group by group; a group's penalty is on the tokens that earlier groups chose."""
    sources, _, vocabulary = logp.shape
    chosen = logp.new_zeros(sources, vocabulary)
    parts = []
    for group in range(base.shape[1]):
        own = logp[:, group * size : (group + 1) * size]
        ranked = own if group == 0 or not strength else own - strength * chosen[:, None]
        found = best_candidates(ranked.reshape(-1, vocabulary), base[:, group], 2 * size, banned)
        real = own.flatten(1).gather(1, found.parent * vocabulary + found.token).double()
        value = base[:, group].gather(1, found.parent) + real
        value = value.masked_fill(found.value == -INFINITY, -INFINITY)
        words = (found.token != eos) & (found.value > -INFINITY)
        going = words & (words.long().cumsum(1) <= size)
        chosen = chosen.scatter_add(1, found.token, going.to(logp.dtype))
        parts.append((value, found.parent + group * size, found.token))
    value, parent, token = (torch.stack(part, 1) for part in zip(*parts, strict=True))
    return Choices(value, parent, token, torch.zeros_like(token))


def _with(found: Hypotheses, more: Hypotheses, rows: Tensor, eos: int) -> Hypotheses:
    """The hypotheses of these sources, with empty slots filled from `more`."""
    longest = max(found.tokens.shape[2], more.tokens.shape[2])
    tokens, added = (
        pad(part.tokens, (0, longest - part.tokens.shape[2]), value=eos) for part in (found, more)
    )
    found, more = found._replace(tokens=tokens), more._replace(tokens=added)
    count = tokens.shape[1]
    own = Hypotheses(*(part[rows] for part in found))
    new = more._replace(score=more.score.masked_fill(_among(more.tokens, own), -INFINITY))
    room = (own.lengths == 0).sum(1, keepdim=True)
    late = (new.score > -INFINITY).cumsum(1) > room
    new = new._replace(score=new.score.masked_fill(late, -INFINITY))
    joined = Hypotheses(*(torch.cat(pair, 1) for pair in zip(own, new, strict=True)))
    filled = distinct(joined, count, eos)
    tokens = pad(filled.tokens, (0, longest - filled.tokens.shape[2]), value=eos)
    return Hypotheses(
        *(a.index_copy(0, rows, b) for a, b in zip(found, filled._replace(tokens=tokens), strict=True))
    )


def _among(tokens: Tensor, own: Hypotheses) -> Tensor:
    """Which of the token sequences [B, M, T] are among the hypotheses, [B, M]."""
    equal = (tokens[:, :, None] == own.tokens[:, None]).all(3) & (own.lengths > 0)[:, None]
    return equal.any(2)
