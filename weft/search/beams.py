"""The tensors of a beam search, and what one step does to them: pure functions, the same on every device.

None of them asks for a value of a tensor, so a GPU can run them without waiting (captured.py). `time` is the
number of the step, from 1: a number, or a tensor [1]. While it runs, the beam stores no token sequences: each
step records the parent of each hypothesis and the token that was added. At the end `read_back` reads the
sequences of the few that are returned backwards from these records. Read next: beam.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from weft.search.candidates import Candidates
from weft.search.hypotheses import Hypotheses
from weft.search.offered import Stop
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
    """The table [B, N] of all sources with its tokens."""
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


class Beams(NamedTuple):
    """The B sources still being searched, with the beam of each."""

    source: Tensor  # [B] int64, the number of the source
    limit: Tensor  # [B] int64, its max_length
    finished: FinishedHypotheses  # the best N finished hypotheses so far
    num_finished: Tensor  # [B] int64, number of all finished hypotheses
    logp: Tensor  # [B, W] float64, cumulative; -inf for no hypothesis; W is 1 before the first step
    parent: Tensor  # [B, W] int64, the slot of each hypothesis one step before
    token: Tensor  # [B, W] int64, its last token


def start_beams(first: Tensor, limits: Tensor, nbest: int) -> Beams:
    """Every source with one empty hypothesis."""
    source = torch.arange(len(first), device=first.device)
    table = nothing_finished(len(first), nbest, first.device)
    logp = torch.zeros(len(first), 1, dtype=torch.float64, device=first.device)
    zero = torch.zeros_like(source)
    return Beams(source, limits, table, zero, logp, zero[:, None], first[:, None])


def ends(found: Candidates, is_eos: Tensor, width: int) -> Tensor:
    """Which candidates finish, [B, 2W] bool: those among the first W that choose eos."""
    ending = is_eos[:, :width] & (found.value[:, :width] > -INFINITY)
    return pad(ending, (0, is_eos.shape[1] - width))


def finish(
    beams: Beams, found: Candidates, ending: Tensor, time: int | Tensor, norm: Tensor, extra: Tensor | None
) -> Beams:
    """Store the candidates that end as finished; `norm` is [T + 1], `extra` [B, W] is added to scores."""
    width = ending.shape[1] // 2
    parent = found.parent[:, :width]
    value = found.value[:, :width].masked_fill(~ending[:, :width], -INFINITY)
    ended = FinishedHypotheses(value / _norm_at(norm, time), value, _filled(parent, time - 1), parent)
    table = merge_ended(beams.finished, _penalised(ended, extra, parent))
    return beams._replace(finished=table, num_finished=beams.num_finished + ending.sum(1))


def extend(beams: Beams, found: Candidates, is_eos: Tensor, width: int) -> tuple[Beams, Tensor]:
    """The next beam: the first W candidates without eos, in order; and their indices, [B, W].

    If there are fewer than W, candidates with eos fill the slots, with logp -inf.
    """
    order = is_eos.to(torch.uint8).sort(dim=1, stable=True).indices[:, :width]
    logp = found.value.masked_fill(is_eos, -INFINITY).gather(1, order)
    parent, token = found.parent.gather(1, order), found.token.gather(1, order)
    return beams._replace(logp=logp, parent=parent, token=token), order


def done_sources(
    beams: Beams,
    time: int | Tensor,
    norm: Tensor,
    *,
    enough: int,
    nbest: int,
    stop: Stop,
    extra: Tensor | None = None,
) -> Tensor:
    """Which sources are done by rule 2 or 3, [B] bool."""
    score, finished = beams.finished.score, beams.num_finished >= enough
    bound = beams.logp[:, 0] / norm[beams.limit]
    alive = beams.logp / _norm_at(norm, time)  # [B, W]
    if extra is not None:
        alive = alive + extra.gather(1, beams.parent)
    alive = alive.amax(1)  # with a penalty the best is not always the first
    if stop in ("best", "worst"):
        finished = finished & (alive <= score[:, 0 if stop == "best" else -1])
    return (bound <= score[:, nbest - 1]) | finished


def cut(beams: Beams, time: int | Tensor, norm: Tensor, extra: Tensor | None = None) -> Beams:
    """Rule 1: at its max_length a source keeps its active hypotheses, after those that ended."""
    value = beams.logp.masked_fill((beams.limit != time)[:, None], -INFINITY)
    slots = torch.arange(beams.parent.shape[1], device=value.device).expand_as(beams.parent)
    whole = FinishedHypotheses(value / _norm_at(norm, time), value, _filled(slots, time), slots)
    return beams._replace(finished=append_cut(beams.finished, _penalised(whole, extra, beams.parent)))


def _penalised(new: FinishedHypotheses, extra: Tensor | None, parent: Tensor) -> FinishedHypotheses:
    return new if extra is None else new._replace(score=new.score + extra.gather(1, parent))


def _norm_at(norm: Tensor, time: int | Tensor) -> Tensor:
    return norm.index_select(0, time) if isinstance(time, Tensor) else norm[time]


def _filled(like: Tensor, number: int | Tensor) -> Tensor:
    return torch.full_like(like, number) if isinstance(number, int) else torch.zeros_like(like) + number
