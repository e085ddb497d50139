"""The record of a beam search: every candidate that was considered, and its fate.

At each step a source's best 2W continuations are candidates; others can neither finish nor be
kept. `replay` runs the search again from the record, in plain Python without tensors or
model: the plain twin that the fast search must equal. Read next: beam.py.
"""

from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import INFINITY, Candidates
from weft.search.hypotheses import norm
from weft.search.offered import Normalisation

FATES = ("pruned", "kept", "finished", "stopped", "cut")
"""pruned: its rank was too low. kept: continued. finished: chose eos. stopped: kept, but its source was
done. cut: kept, but max_length was reached."""

PRUNED, KEPT, FINISHED, STOPPED, CUT = range(len(FATES))


class Candidate(NamedTuple):
    """One continuation of one hypothesis."""

    source: int
    time: int  # 1 is the first token
    parent: int  # slot, in the beam at time - 1, of the hypothesis continued (0 at time 1)
    token: int
    rank: int  # among the source's candidates at this time, from 0
    logp: float  # of the token, in nats
    cumulative: float  # of the whole hypothesis
    score: float  # cumulative / norm(time)
    slot: int  # its place in the beam at this time, -1 if it has none
    fate: str


class TracedSettings(NamedTuple):
    """The settings that a replay needs."""

    eos: int
    width: int
    nbest: int
    length_penalty: float
    normalisation: Normalisation
    enough: int  # number of finished hypotheses after which a source may be done
    limits: list[int]  # max_length of each source


class ReplayedHypothesis(NamedTuple):
    """A hypothesis as the replay finds it; the tokens include eos where it ended."""

    tokens: list[int]
    logp: float
    score: float


class Trace:
    """The record of one search: pass a new one to `beam(..., trace=)` and read it afterwards.

    Attributes:
        settings: those of the search, once it has begun.
        candidates: a list of Candidate in order of time, source and rank.

    Example:
        >>> import torch
        >>> from weft.search import beam_search
        >>> bigram, trace = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1]]).log(), Trace()
        >>> _ = beam_search(lambda token, state: (bigram[token], state), None, torch.tensor([0]),
        ...                 eos=2, max_length=2, width=2, trace=trace)
        >>> [(one.time, one.token, one.fate) for one in trace.candidates][:2]
        [(1, 1, 'kept'), (1, 2, 'finished')]
    """

    def __init__(self) -> None:
        self.settings: TracedSettings | None = None
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._candidates: list[Candidate] = []

    def begin(self, settings: TracedSettings) -> None:
        """Called by the search.

        Raises:
            ConfigError: it already holds a search.
        """
        if self.settings is not None:
            raise ConfigError("trace: it already holds a search; give each search a new Trace()")
        self.settings = settings

    def record(
        self,
        time: int,
        source: Tensor,
        found: Candidates,
        logp: Tensor,
        ending: Tensor,
        order: Tensor,
        alive: Tensor,
        done: Tensor,
        limit: Tensor,
        norm_of_time: Tensor,
    ) -> None:
        """Called by the search after each step; sources that are done have no possible candidates left.

        Args:
            time, source: the step, and the numbers [B] of the sources in the batch.
            found, logp: the candidates [B, 2W] and what they were chosen from.
            ending: [B, 2W] bool, finished now.
            order, alive: [B, W] which candidates are the next beam, and their cumulative logp.
            done, limit: [B] whether a source is done now, and its max_length.
            norm_of_time: norm(time).
        """
        sources, count = found.value.shape
        width = len(logp) // sources
        place = (found.parent + torch.arange(sources, device=logp.device)[:, None] * width).flatten()
        own = logp[place, found.token.flatten()].view(sources, count).double()

        slots = torch.arange(order.shape[1], device=order.device).expand_as(order)
        slots = torch.where(alive > -INFINITY, slots, -1)
        slot = torch.full_like(found.parent, -1).scatter(1, order, slots)
        after = torch.where(done, torch.where(limit == time, CUT, STOPPED), KEPT)[:, None]
        fate = torch.where(ending, FINISHED, torch.where(slot >= 0, after, PRUNED))

        rank = torch.arange(count, device=order.device).expand_as(slot)
        times = torch.full_like(slot, time)
        where = source[:, None].expand_as(slot)
        whole = torch.stack([where, times, found.parent, found.token, rank, slot, fate], 2)
        real_numbers = torch.stack([own, found.value, found.value / norm_of_time], 2)
        possible = found.value > -INFINITY
        self._steps.append((whole[possible].cpu(), real_numbers[possible].cpu()))

    @property
    def candidates(self) -> list[Candidate]:
        """Every candidate, in order of time, source and rank."""
        for whole, real in self._steps:
            for (source, time, parent, token, rank, slot, fate), (logp, cumulative, score) in zip(
                whole.tolist(), real.tolist(), strict=True
            ):
                self._candidates.append(
                    Candidate(source, time, parent, token, rank, logp, cumulative, score, slot, FATES[fate])
                )
        self._steps.clear()
        return self._candidates

    def replay(self) -> list[list[ReplayedHypothesis]]:
        """The n best of each source, found again from each candidate's parent, token and logp alone."""
        settings = self._begun()
        steps: dict[int, dict[int, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
        for candidate in self.candidates:
            steps[candidate.source][candidate.time].append(candidate)
        return [
            _replay_source(steps[source], limit, settings) for source, limit in enumerate(settings.limits)
        ]

    def _begun(self) -> TracedSettings:
        if self.settings is None:
            raise ConfigError("trace: it holds no search yet; give it to beam(..., trace=) first")
        return self.settings


def _replay_source(
    steps: dict[int, list[Candidate]], limit: int, settings: TracedSettings
) -> list[ReplayedHypothesis]:
    alive: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[ReplayedHypothesis] = []
    for time in range(1, limit + 1):
        length_norm = norm(time, settings.length_penalty, settings.normalisation)
        kept: list[tuple[list[int], float]] = []
        for candidate in steps[time]:
            before, cumulative = alive[candidate.parent]
            tokens, cumulative = [*before, candidate.token], cumulative + candidate.logp
            if candidate.token != settings.eos:
                kept.append((tokens, cumulative))
            elif candidate.rank < settings.width:
                ended.append(ReplayedHypothesis(tokens, cumulative, cumulative / length_norm))
        alive = kept[: settings.width]
        # The stopping rules of beam.py need no replay: after a stop there are no more candidates.
        if not steps[time + 1]:
            break
    # The sort is stable: ties go to the earlier end, then to the better rank.
    best = sorted(ended, key=lambda hypothesis: -hypothesis.score)[: settings.nbest]
    cut = [
        ReplayedHypothesis(*hypothesis, hypothesis[1] / length_norm) for hypothesis in alive if time == limit
    ]
    return best + cut[: settings.nbest - len(best)]
