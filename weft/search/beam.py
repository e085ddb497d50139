"""Beam search: the W most probable hypotheses of every source side by side, in tensors.

One step: call the model on all B * W rows; take the best 2W continuations of each source (candidates.py);
those among the first W that choose eos have finished, and the first W that do not choose eos are the next
beam. 2W are always enough: each of the W hypotheses has only one continuation with eos, so at least W of the
2W continue.

Order of the result: first the hypotheses that ended, by score = logp / norm(length) (hypotheses.py),
where the length includes eos; then those cut at max_length, by score. An unfinished hypothesis never ranks
before a finished one, because repetitive loops get the highest scores.

A source is done when any of these holds:
  1. It has reached its max_length.
  2. patience * W of its hypotheses have finished (Kasai et al. 2022; patience 1 is fairseq's rule), and
     no active hypothesis scores better at its current length than the best of these. The second
     condition keeps a confident model from ending early: where one word is nearly certain, eos ranks
     second after every word, and W such improbable ends would stop the search before the sentence is
     complete. This is part of the definition of the search: with it, a beam of one is greedy for any length
     penalty. `Stop` names the second conditions of other programs.
  3. Its n best can no longer change. Let c <= 0 be the cumulative log-probability of the best
     active hypothesis. Any continuation of it ends with a sum s <= c, since a log-probability is never
     above 0, at a length n <= max_length. norm is positive and non-decreasing, so
        s / norm(n) <= c / norm(n) <= c / norm(max_length)      (c / norm(n) rises with n as c <= 0),
     and the other active hypotheses start from at most c. When the nbest-th finished score is at least
     this bound, continuing could at most tie, and ties go to the hypothesis that ended earlier. Cut
     hypotheses rank last.
Rule 3 saves time and never changes the result.

Read `_search` for the loop, then its steps in beams.py. Read next: trace.py.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.probe import probe
from weft.search.beams import (
    BeamAdditions,
    as_hypotheses,
    cut,
    done_sources,
    ends,
    extend,
    finish,
    start_beams,
    write,
)
from weft.search.candidates import INFINITY, best_candidates
from weft.search.compiled import whole_search
from weft.search.hypotheses import Hypotheses, best, norms_for
from weft.search.offered import Normalisation, Stop
from weft.search.step import (
    COMPACT_SHARE,
    Rule,
    SearchRequest,
    Step,
    check_best,
    checked_step,
    ruled,
    source_limits,
)
from weft.search.trace import Trace, TracedSettings
from weft.shapes import check_count
from weft.tree import State, fan, keep_sources, reorder, take

Penalty = Callable[[State], Tensor]
"""Maps the state to a term for the score of each hypothesis that ends, [N] float64, never above 0."""


@torch.no_grad()
def beam_search(
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
    stop: Stop = "best",
    banned: Sequence[int] = (),
    rules: Sequence[Rule] = (),
    recorded: bool = False,
    trace: Trace | None = None,
    penalty: Penalty | None = None,
) -> Hypotheses:
    """The best hypotheses that beam search of `width` finds; ties go to the earlier parent and lower token.

    Args:
        step, state, first, eos, max_length: as in greedy_search.
        width: W, hypotheses kept per source.
        nbest: N, hypotheses returned per source, at most W.
        length_penalty, normalisation: alpha, 0 for none; "length" or "gnmt" (hypotheses.py).
        patience: a source may be done when patience * W hypotheses have finished.
        stop: the second condition of rule 2.
        banned: tokens never chosen; other probabilities are not renormalised.
        rules, recorded: as in greedy_search.
        trace: a new Trace, which records every expanded candidate and its fate.
        penalty: added to the score of hypotheses that end (coverage_penalty); not possible with a trace.

    Returns:
        Hypotheses in the order of the sources, best first.

    Raises:
        ConfigError: a setting out of its range; the step gives NaN, logits, or no possible token.

    Example:
        >>> bigram = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log()
        >>> found = beam_search(lambda token, state: (bigram[token], state), None, torch.tensor([0]),
        ...              eos=2, max_length=4, width=3, length_penalty=0.0)
        >>> found.tokens.tolist(), round(float(found.score.exp()), 2)
        ([[[2]]], 0.3)
    """
    limits = source_limits(max_length, first, state)
    enough = _enough(width, nbest, math.inf if stop == "never" else patience, limits)
    kept = width if stop == "worst" else nbest  # finished hypotheses
    if trace is not None:
        settings = TracedSettings(eos, width, nbest, length_penalty, normalisation, enough, limits.tolist())
        _begin(trace, settings, penalty)
    norm = norms_for(limits, length_penalty, normalisation)
    asked = SearchRequest(
        first, limits, eos, banned, width, nbest, kept, enough, stop, norm, rules=rules, recorded=recorded
    )
    found = whole_search(step, state, asked) if trace is None and penalty is None else None
    if found is None:
        found = _search(step, state, asked, norm, trace, penalty)
    return best(found, nbest)


def _search(
    step: Step,
    state: State,
    asked: SearchRequest,
    norm: Tensor,
    trace: Trace | None,
    penalty: Penalty | None,
) -> Hypotheses:
    """The loop over time; sources that are done are removed, together with their rows of the state."""
    step, state = ruled(step, state, asked.rules)
    limits, eos, width = asked.limits, asked.eos, asked.width
    beams = start_beams(asked.first, limits, asked.kept)
    result, steps, time, stops = beams.finished, list[BeamAdditions](), 0, set(limits.tolist())

    while len(beams.source):
        time += 1
        logp, state = checked_step(step, beams.token.flatten(), state, eos, asked.banned)
        found = best_candidates(logp, beams.logp, 2 * width, asked.banned)
        check_best(found.value[:, 0], beams.logp[:, 0], time)
        extra = None if penalty is None else penalty(state).view(len(beams.source), -1)  # of each parent

        is_eos = found.token == eos
        ending = ends(found, is_eos, width)
        if bool(ending.any()):
            beams = finish(beams, found, ending, time, norm, extra)
        beams, order = extend(beams, found, is_eos, width)
        steps.append(BeamAdditions(beams.source, beams.parent, beams.token))

        done = done_sources(
            beams, time, norm, enough=asked.enough, nbest=asked.nbest, stop=asked.stop, extra=extra
        )
        if time in stops:
            beams, done = cut(beams, time, norm, extra), done | (beams.limit == time)
        if trace is not None:
            trace.record(
                time, beams.source, found, logp, ending, order, beams.logp, done, beams.limit, norm[time]
            )

        num_done = int(done.sum())
        if num_done == len(done):
            break
        if num_done and num_done >= COMPACT_SHARE * len(done):
            result, keep = write(result, beams.source, beams.finished), (~done).nonzero().squeeze(1)
            state = keep_sources(state, keep, 1 if time == 1 else width)
            beams = take(beams, keep)
        elif num_done:
            # A done source that stays in the batch can no longer finish or record anything.
            beams = beams._replace(logp=beams.logp.masked_fill(done[:, None], -INFINITY))
        state = fan(state, width) if time == 1 else _follow(state, beams.parent)

    return as_hypotheses(write(result, beams.source, beams.finished), limits, steps, eos)


def _enough(width: int, nbest: int, patience: float, limits: Tensor) -> int:
    """Number of hypotheses of a source that must finish under rule 2; checks the settings."""
    check_count("width", width)
    if not 1 <= nbest <= width:
        raise ConfigError(f"nbest: expected 1 to {width} (the beam width), got {nbest}")
    if not patience > 0:
        raise ConfigError(f"patience: expected a number above 0 (usually 1), got {patience}")
    most = width * (int(limits.max()) if len(limits) else 0)
    return most if math.isinf(patience) else min(most, max(nbest, math.ceil(patience * width)))


def _begin(trace: Trace, settings: TracedSettings, penalty: Penalty | None) -> None:
    if penalty is not None:
        raise ConfigError("trace: a search with coverage cannot be replayed; leave out one of them")
    trace.begin(settings)


def _follow(state: State, parent: Tensor) -> State:
    """Reorder the state's rows to match their hypotheses; unchanged if none moved."""
    sources, width = parent.shape
    if width == 1:
        return state
    stay = torch.arange(sources * width, device=parent.device).view(sources, width)
    rows = parent + stay[:, :1]
    return state if torch.equal(rows, stay) else reorder(state, rows.flatten())


LEAST = 1e-6
"""Least attention of a position: the logarithm of 0 would make every score -inf."""


class SourceMask(NamedTuple):
    """The real positions of each source, [B, S] bool."""

    mask: Tensor
    per_source = True


class CoverageState(NamedTuple):
    """The state of a step that sums up its attention."""

    total: Tensor  # [N, S] attention so far
    source: SourceMask
    inner: State


Attended = Callable[[dict[str, list[Tensor]]], Tensor]
"""Maps what a probe recorded during one step to the attention of that step, [N, S] or [B, W, S]."""


def covering(step: Step, state: State, mask: Tensor, attended: Attended) -> tuple[Step, CoverageState]:
    """A step that also sums up the attention, and its initial state."""

    def counting(token: Tensor, state: CoverageState) -> tuple[Tensor, CoverageState]:
        with probe() as seen:
            logp, inner = step(token, state.inner)
        weights = attended(seen).reshape(len(token), -1)
        return logp, CoverageState(state.total + weights.to(state.total.dtype), state.source, inner)

    return counting, CoverageState(torch.zeros(mask.shape, device=mask.device), SourceMask(mask), state)


def coverage_penalty(state: CoverageState, beta: float) -> Tensor:
    """cp of every hypothesis, [N] float64: less for one that attended to only part of the source.

    cp = beta * sum_j log(min(sum_t alpha_tj, 1)), where alpha_tj is the attention of step t to source
    position j, is added to a score when the hypothesis ends. It is never above 0, so the early finish stays
    correct.

    Source: Wu et al. 2016, equation 14.

    Example:
        >>> import torch
        >>> mask = torch.tensor([[True, True, False]])
        >>> state = CoverageState(torch.tensor([[0.5, 1.7, 0.0]]), SourceMask(mask), None)
        >>> round(float(coverage_penalty(state, beta=1.0)), 3)
        -0.693
    """
    mask = state.source.mask
    seen = state.total.double().clamp(LEAST, 1.0).log().view(len(mask), -1, mask.shape[1])
    return beta * seen.masked_fill(~mask[:, None], 0.0).sum(2).flatten()
