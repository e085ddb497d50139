"""The hypotheses that have ended so far, and the recovery of their tokens.

While it runs, the beam stores no token sequences: each step records the parent of each hypothesis
and the token that was added. At the end, the sequences of the few hypotheses that are returned are
read backwards from these records. Read next: beam.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from weft.search.hypotheses import Hypotheses
from weft.search.step import no_token

INFINITY = float("inf")


class FinishedHypotheses(NamedTuple):
    """The best N finished hypotheses of each source, best first; an empty slot has score -inf."""

    score: Tensor  # [B, N] float64
    logp: Tensor  # [B, N] float64
    written: Tensor  # [B, N] int64, tokens before eos
    slot: Tensor  # [B, N] int64, slot in the beam of the hypothesis that wrote the last of them


class BeamAdditions(NamedTuple):
    """What one step added to the beam."""

    source: Tensor  # [B] int64, the sources that were still in the batch
    parent: Tensor  # [B, W] int64
    token: Tensor  # [B, W] int64


def nothing_finished(sources: int, count: int, device: torch.device) -> FinishedHypotheses:
    """An empty table."""
    score = torch.full((sources, count), -INFINITY, dtype=torch.float64, device=device)
    zero = torch.zeros((sources, count), dtype=torch.int64, device=device)
    return FinishedHypotheses(score, score, zero, zero)


def merge_ended(table: FinishedHypotheses, new: FinishedHypotheses) -> FinishedHypotheses:
    """The best N by score; ties go to the earlier end, then to the better rank."""
    joined = _join(table, new)
    # A source without new ends keeps its order: if it is done, cut hypotheses follow those that ended.
    without = (new.score == -INFINITY).all(1, keepdim=True)
    return _pick(joined, joined.score.masked_fill(without, 0.0), table.score.shape[1])


def append_cut(table: FinishedHypotheses, cut: FinishedHypotheses) -> FinishedHypotheses:
    """Fill empty slots with hypotheses that were cut, by score; they rank last, whatever their score."""
    joined = _join(table, _pick(cut, cut.score, cut.score.shape[1]))  # a penalty may change their order
    return _pick(joined, (joined.score > -INFINITY).to(torch.uint8), table.score.shape[1])


def read_back(table: FinishedHypotheses, steps: list[BeamAdditions], eos: int) -> Tensor:
    """The tokens of every hypothesis in the table: [B, N, T], padded with eos."""
    longest = len(steps)
    tokens = torch.full((*table.slot.shape, longest), eos, dtype=torch.int64, device=table.slot.device)
    slot = table.slot.clone()
    for index in range(longest - 1, -1, -1):
        source, parent, token = steps[index]
        here = table.written[source] > index
        at = slot[source]
        tokens[source, :, index] = torch.where(here, token.gather(1, at), eos)
        slot[source] = torch.where(here, parent.gather(1, at), at)
    return tokens


def write(table: FinishedHypotheses, rows: Tensor, new: FinishedHypotheses) -> FinishedHypotheses:
    """The table with these rows replaced."""
    return FinishedHypotheses(*(old.index_copy(0, rows, part) for old, part in zip(table, new, strict=True)))


def as_hypotheses(
    table: FinishedHypotheses, limits: Tensor, steps: list[BeamAdditions], eos: int
) -> Hypotheses:
    """The table with its tokens.

    Args:
        table: [B, N], of all sources.
        limits: [B], max_length of each source.
    """
    there = table.score > -INFINITY
    if not bool(there.any(1).all()):
        raise no_token(int(there.any(1).int().argmin()))
    # A hypothesis with the maximum number of tokens was cut: one that ended has eos among them.
    lengths = (table.written + (table.written < limits[:, None])) * there
    tokens = read_back(table, steps, eos)[:, :, : int(lengths.max()) if len(lengths) else 0]
    return Hypotheses(tokens, lengths, table.logp, table.score)


def _join(table: FinishedHypotheses, new: FinishedHypotheses) -> FinishedHypotheses:
    return FinishedHypotheses(*(torch.cat(pair, 1) for pair in zip(table, new, strict=True)))


def _pick(joined: FinishedHypotheses, key: Tensor, count: int) -> FinishedHypotheses:
    order = key.sort(dim=1, descending=True, stable=True).indices[:, :count]
    return FinishedHypotheses(*(column.gather(1, order) for column in joined))
