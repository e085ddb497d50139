"""Beam search: the W most probable hypotheses of every source side by side, in tensors.

One step: call the model on all B * W rows; take the best 2W continuations of each source
(candidates.py); those among the first W that choose eos have finished, and the first W that do not
choose eos are the next beam. 2W are always enough, since each of the W hypotheses ends in one way
only, and so a finished hypothesis never leaves the beam a place short.

Order of the result: hypotheses that ended, by score = logp / norm(length) (normalisation.py), eos
counted; then those cut at max_length, by score, however high: an unfinished sentence is not a
better one, and loops score best of all.

A source is done when any of these holds:
  1. it has reached its max_length;
  2. patience * W of its hypotheses have finished (Kasai et al. 2022; patience 1 is fairseq's rule), and
     none alive scores better at its present length than the best of these. The second half keeps a sure
     model from ending early: where one word is all but certain, eos comes second at every word's end,
     and W such ends, each improbable, would otherwise stop the search before the sentence is written.
     This is part of what the search is, and makes a beam of one greedy whatever the length penalty;
  3. its n best can no longer change. Let c <= 0 be the cumulative log-probability of the best
     hypothesis alive. Whatever comes of it ends with a sum s <= c, since a log-probability is never
     above 0, at a length n <= max_length. norm is positive and never falls, so
        s / norm(n) <= c / norm(n) <= c / norm(max_length)      (c / norm(n) rises with n as c <= 0),
     and all others alive start from less than c. When the nbest-th finished score is at least this
     bound, going on could at most tie, and ties go to what ended earlier. Cut hypotheses rank behind.
Rule 3 saves time and never changes the result.

Read next: finished.py, trace.py.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import INFINITY, best_candidates
from weft.search.finished import Added, Finished, append_cut, merge_ended, nothing_finished, read_back
from weft.search.hypotheses import Hypotheses
from weft.search.normalisation import Normalisation, norms
from weft.search.step import COMPACT_SHARE, Step, check_best, checked_step, no_token, source_limits
from weft.search.trace import Settings, Trace
from weft.tree import State, fan, keep_sources, reorder, take


@torch.no_grad()
def beam(
    step: Step,
    state: State,
    first: Tensor,
    *,
    eos: int,
    max_length: int | Tensor,
    width: int,
    nbest: int = 1,
    length_penalty: float = 1.0,
    normalisation: Normalisation = "length",
    patience: float = 1.0,
    banned: Sequence[int] = (),
    trace: Trace | None = None,
    penalty: Callable[[State], Tensor] | None = None,
) -> Hypotheses:
    """The best hypotheses that a beam of `width` finds.

    Sums are kept in float64. Equal candidates are ordered by parent, then by token id, so that the
    result does not depend on the batch a source is in.

    Args:
        step: token [N] and state give logp [N, V] and state (step.py).
        state: the state before the first step, a row a source.
        first: [B] int64, the token fed first, usually sos.
        eos: the token that ends a hypothesis.
        max_length: tokens at most, eos counted; one number, or [B] for a limit a source.
        width: W, hypotheses kept a source.
        nbest: N, hypotheses returned a source, at most W.
        length_penalty: alpha of the normalisation; 0 is none.
        normalisation: "length" or "gnmt" (normalisation.py).
        patience: a source is done when patience * W hypotheses have finished and none alive scores
            better than the best of them; `math.inf`: only when its n best can no longer change.
        banned: tokens never chosen; the other probabilities stay as they are.
        trace: a new Trace, to keep every expanded candidate and its fate.
        penalty: what the state adds to the score of a hypothesis that ends, [N] float64, never above 0
            (coverage.py); a trace cannot replay it.

    Returns:
        Hypotheses in the order of the sources, best first.

    Raises:
        ConfigError: a setting out of its range; the step gives NaN, logits, or no possible token.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = beam(lambda token, state: (bigram[token], state), None, torch.tensor([0]),
        ...              eos=2, max_length=4, width=3, length_penalty=0.0)
        >>> found.tokens.tolist(), round(float(found.score.exp()), 2)
        ([[[2]]], 0.3)
    """
    enough = _check(width, nbest, patience)
    if trace is not None and penalty is not None:
        raise ConfigError("trace: a search with coverage cannot be replayed; leave out one of them")
    limits = source_limits(max_length, first)
    longest = int(limits.max()) if len(limits) else 0
    norm_of = norms(longest, length_penalty, normalisation).to(first.device)
    stops = set(limits.tolist())
    if trace is not None:
        most = int(min(enough, longest * width))
        trace.begin(Settings(eos, width, nbest, length_penalty, normalisation, most, limits.tolist()))

    source = torch.arange(len(first), device=first.device)  # those still in the batch; B is their number
    limit = limits
    table = nothing_finished(len(first), nbest, first.device)
    result = Finished(*(column.clone() for column in table))
    num_finished = torch.zeros_like(source)
    base = torch.zeros(len(first), 1, dtype=torch.float64, device=first.device)  # [B, W], W = 1 at first
    token, steps, time = first, list[Added](), 0

    while len(source):
        time += 1
        logp, state = checked_step(step, token, state, eos, banned)
        found = best_candidates(logp, base, 2 * width, banned)
        check_best(found.value[:, 0], base[:, 0], time)
        less = None if penalty is None else penalty(state).view(len(source), -1)  # of each parent

        is_eos = found.token == eos
        ending = is_eos & (found.value > -INFINITY)
        ending[:, width:] = False
        if bool(ending.any()):
            value = found.value[:, :width].masked_fill(~ending[:, :width], -INFINITY)
            written = torch.full_like(found.parent[:, :width], time - 1)
            new = Finished(value / norm_of[time], value, written, found.parent[:, :width])
            new = _penalised(new, less, found.parent[:, :width])
            table = merge_ended(table, new)
            num_finished = num_finished + ending.sum(1)

        # The first W without eos, in order. Where there are not so many, an ending one fills the place, dead.
        order = is_eos.to(torch.uint8).sort(dim=1, stable=True).indices[:, :width]
        parent, token = found.parent.gather(1, order), found.token.gather(1, order)
        base = found.value.masked_fill(is_eos, -INFINITY).gather(1, order)
        steps.append(Added(source, parent, token))

        bound = base[:, 0] / norm_of[limit]
        alive = base[:, 0] / norm_of[time]
        if less is not None:
            alive = alive + less.gather(1, parent)[:, 0]
        done = (bound <= table.score[:, -1]) | ((num_finished >= enough) & (alive <= table.score[:, 0]))
        if time in stops:
            at_limit = limit == time
            value = base.masked_fill(~at_limit[:, None], -INFINITY)
            slots = torch.arange(width, device=source.device).expand_as(parent)
            cut = Finished(value / norm_of[time], value, torch.full_like(parent, time), slots)
            table = append_cut(table, _penalised(cut, less, parent))
            done = done | at_limit
        if trace is not None:
            trace.record(time, source, found, logp, ending, order, base, done, limit, norm_of[time])

        num_done = int(done.sum())
        if num_done == len(done):
            break
        rows_before = len(logp) // len(source)
        if num_done and num_done >= COMPACT_SHARE * len(done):
            result = _write(result, source, table)
            keep = (~done).nonzero().squeeze(1)
            state = keep_sources(state, keep, rows_before)
            source, limit, table, num_finished, base, parent, token = take(
                (source, limit, table, num_finished, base, parent, token), keep
            )
        elif num_done:
            # A done source that waits to leave is dead: nothing of it may finish or be recorded any more.
            base = base.masked_fill(done[:, None], -INFINITY)
        state = fan(state, width) if time == 1 else _follow(state, parent)
        token = token.flatten()

    result = _write(result, source, table)
    if bool((result.score[:, 0] == -INFINITY).any()):
        raise no_token(int(result.score[:, 0].argmin()))
    # Cut exactly where as many tokens were written as are allowed: one that ended left room for its eos.
    there = result.score > -INFINITY
    lengths = (result.written + (result.written < limits[:, None])) * there
    tokens = read_back(result, steps, eos)[:, :, : int(lengths.max()) if len(lengths) else 0]
    return Hypotheses(tokens, lengths, result.logp, result.score)


def _check(width: int, nbest: int, patience: float) -> float:
    """How many finished hypotheses are enough, after refusing what is out of range."""
    if width < 1:
        raise ConfigError(f"width: expected at least 1, got {width}")
    if not 1 <= nbest <= width:
        raise ConfigError(f"nbest: expected 1 to {width} (the beam width), got {nbest}")
    if not patience > 0:
        raise ConfigError(f"patience: expected a number above 0 (usually 1), got {patience}")
    return max(nbest, math.ceil(patience * width)) if math.isfinite(patience) else math.inf


def _follow(state: State, parent: Tensor) -> State:
    """The state's rows where their hypotheses went; untouched where each stayed in its place."""
    sources, width = parent.shape
    if width == 1:
        return state
    stay = torch.arange(sources * width, device=parent.device).view(sources, width)
    rows = parent + stay[:, :1]
    return state if torch.equal(rows, stay) else reorder(state, rows.flatten())


def _penalised(new: Finished, less: Tensor | None, parent: Tensor) -> Finished:
    return new if less is None else new._replace(score=new.score + less.gather(1, parent))


def _write(result: Finished, source: Tensor, table: Finished) -> Finished:
    return Finished(*(old.index_copy(0, source, new) for old, new in zip(result, table, strict=True)))
