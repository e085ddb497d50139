"""The likeliest whole next words: a beam over pieces; a word ends where the next piece begins another.

A word's probability is that of its pieces, times that of no further piece. Read next: ../text/vocabulary.py,
which pieces begin a word; ../serve/pages.py, the words that the page offers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from weft.search.candidates import INFINITY
from weft.search.step import Step, checked_step
from weft.tree import State, fan, reorder

LONGEST = 32
"""Pieces of a word; a longer one is cut there."""


class NextWord(NamedTuple):
    """A word in pieces, and its log-probability in nats."""

    tokens: list[int]
    logp: float


class WordEdges(NamedTuple):
    """Where words meet, for each piece of a vocabulary."""

    begins: Tensor  # [V] bool, pieces that begin a word, unless they come first
    ends: Tensor  # [V] bool, pieces that end their word


@torch.no_grad()
def next_words(
    step: Step,
    state: State,
    token: Tensor,
    edges: WordEdges,
    *,
    eos: int,
    count: int,
    banned: Sequence[int] = (),
    inside: bool = False,
) -> list[NextWord]:
    """The likeliest words after a prefix, best first, from a beam of twice as many."""
    logp, state = checked_step(step, token, state, eos, banned)
    vocabulary = logp.shape[1]
    known = len(edges.begins)  # the others are marks of languages, and places for words to copy
    begins, ends = (pad(edge.to(logp.device), (0, vocabulary - known)) for edge in edges)
    whole, none = begins.clone(), torch.arange(vocabulary, device=logp.device) >= known
    whole[eos] = none[[eos, *banned]] = True
    total, chosen = _best(logp[0].double(), none if inside else none | ~begins, 2 * count)
    tokens, state = [[one] for one in chosen.tolist()], fan(state, len(chosen))
    done: list[NextWord] = []
    for length in range(1, LONGEST + 1):
        ended = torch.full_like(ends[chosen], True) if length == LONGEST else ends[chosen]
        done = _ranked([*done, *_words(tokens, total.masked_fill(~ended, -INFINITY))], count)
        total = total.masked_fill(ended, -INFINITY)
        least = done[-1].logp if len(done) == count else -INFINITY
        if not len(total) or float(total.max()) <= least:
            break
        logp, state = step(chosen, state)
        sums = logp.double() + total[:, None]  # [W, V]
        done += _words(tokens, sums.masked_fill(~whole, -INFINITY).logsumexp(1))
        total, place = _best(sums.flatten(), (whole | none).repeat(len(sums)), 2 * count)
        rows, chosen = place // vocabulary, place % vocabulary
        tokens = [[*tokens[row], one] for row, one in zip(rows.tolist(), chosen.tolist(), strict=True)]
        state = reorder(state, rows)
    return _ranked(done, count)


def _words(tokens: Sequence[list[int]], logp: Tensor) -> list[NextWord]:
    """Those that are possible."""
    return [NextWord(*pair) for pair in zip(tokens, logp.tolist(), strict=True) if pair[1] > -INFINITY]


def _ranked(words: list[NextWord], count: int) -> list[NextWord]:
    return sorted(words, key=lambda one: -one.logp)[:count]


def _best(values: Tensor, excluded: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest of [n] values that are not excluded, at most `count`, and their places."""
    found = values.masked_fill(excluded, -INFINITY).topk(min(count, len(values)))
    there = found.values > -INFINITY
    return found.values[there], found.indices[there]
