"""Greedy search, sampling and beam search in compiled code (native/searching.cpp), many steps in one call.

It serves a step that is the `step` method of an object with `whole_step`, and the rules of rules.py.
Everything else is left to the plain loops in rollout.py and beam.py, its twins: they find the same tokens,
with scores that differ by rounding. A search that fails is repeated by them, for their errors. A sampled
token is another one if its uniform number falls between the two roundings of a boundary, and so is what
follows it.
"""

import math
import time as clock
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from weft import native
from weft.native import WholeStep, pointer
from weft.search.finished import nothing_finished
from weft.search.hypotheses import Hypotheses
from weft.search.normalisation import norms_for
from weft.search.rules import LeastLength, NoRepeat, Prefix, Ruled, UnderRules
from weft.search.step import Step
from weft.search.trace import Settings
from weft.tree import State

INFINITY = float("inf")
MOST = 64
"""Most hypotheses of a source, as in native/searching.cpp."""
SLICE_SECONDS = 0.02
"""A call of compiled code takes about this long, so that a search can be stopped and others get a turn."""
BEAM, GREEDY, SAMPLED = range(3)
STOPS = {"best": 0, "full": 1, "worst": 2, "never": 1}
BROKEN = 2  # a source whose log-probabilities are NaN, above 0, or all -inf


@runtime_checkable
class Whole(Protocol):
    """A model whose step compiled code can take by itself."""

    def whole_step(self, state: State, width: int, steps: int) -> WholeStep | None:
        """Its step for a search of this width and length from a state; None where it has to be called."""


class Drawing(NamedTuple):
    """How `sample` draws tokens."""

    temperature: float
    top_k: int  # 0 keeps every token
    top_p: float  # 1 keeps every token
    generator: torch.Generator

    def served(self) -> bool:
        """Whether compiled code draws so; wrong settings are left to the twin and its errors."""
        narrowed = self.top_k >= 0 and 0 < self.top_p <= 1
        return narrowed and 0 < self.temperature < INFINITY and self.generator.device.type == "cpu"


class Asked(NamedTuple):
    """What is searched, as `beam` takes it; a beam has `norm`, sampling `draw`, greedy search neither."""

    first: Tensor  # [B]
    limits: Tensor  # [B]
    eos: int
    banned: Sequence[int]
    width: int = 1
    nbest: int = 1
    kept: int = 1  # finished hypotheses of a source
    enough: int = 1
    stop: str = "full"
    norm: Tensor | None = None  # [T + 1]
    draw: Drawing | None = None


def whole(step: Step, state: State, asked: Asked) -> Hypotheses | None:
    """The hypotheses that compiled code finds, in the order of the sources; None if it does not serve this.

    Args:
        step, state: as `beam` takes them.
        asked: the search.
    """
    rules: Sequence[object] = ()
    if isinstance(step, UnderRules) and isinstance(state, Ruled) and state.written is None:
        rules, step, state = step.rules, step.step, state.inner
    model = getattr(step, "__self__", None)
    if not isinstance(model, Whole) or step != getattr(model, "step", None) or not len(asked.first):
        return None
    if native.loaded("searching").library is None or asked.width > MOST or asked.first.device.type != "cpu":
        return None
    if asked.draw is not None and not asked.draw.served():
        return None
    prefix = [rule for rule in rules if isinstance(rule, Prefix)]
    grams = [rule.size for rule in rules if isinstance(rule, NoRepeat)]
    least = [rule for rule in rules if isinstance(rule, LeastLength) and rule.eos == asked.eos]
    if len(prefix) > 1 or len(grams) > 1 or len(prefix) + len(grams) + len(least) < len(rules):
        return None
    given = model.whole_step(state, asked.width, int(asked.limits.max()))
    if given is None:
        return None
    symbols = [asked.eos, *asked.banned, *(token for rule in prefix for token in rule.tokens)]
    symbols += map(int, asked.first.aminmax())  # compiled code would read past the end of the table
    if not all(0 <= symbol < given.classes for symbol in symbols):
        return None
    limits = _Limits(list(prefix), max((rule.tokens for rule in least), default=0), sum(grams))
    found = _Search(asked, given, limits)
    return found.result() if found.run() else None


def whole_beam(
    step: Step,
    state: State,
    first: Tensor,
    limits: Tensor,
    settings: Settings,
    kept: int,
    stop: str,
    banned: Sequence[int],
) -> Hypotheses | None:
    """`whole` for a beam search.

    Args:
        step, state, first, limits, stop, banned: as `beam` takes them.
        settings: of the beam.
        kept: finished hypotheses of a source.
    """
    eos, width, nbest, alpha, kind, enough, _ = settings
    norm = norms_for(limits, alpha, kind)
    return whole(step, state, Asked(first, limits, eos, banned, width, nbest, kept, enough, stop, norm))


class _Limits(NamedTuple):
    """The rules of a search."""

    prefix: Sequence[Prefix]  # at most one
    least: int  # tokens before eos
    grams: int  # length of those that do not occur twice; 0 allows all


class _Search:
    """The arguments of weft_search, and the tensors that hold its state."""

    def __init__(self, asked: Asked, given: WholeStep, rules: _Limits) -> None:
        self.asked, self.given = asked, given
        prefix, least, grams = rules
        sources, width, kept = len(asked.first), asked.width, asked.kept
        self.longest = int(asked.limits.max())
        self.table = nothing_finished(sources, kept, asked.first.device)
        self.table = self.table._replace(logp=self.table.logp.clone(), slot=self.table.slot.clone())
        self.parent, self.token = torch.empty(2, sources, self.longest, width, dtype=torch.int64)
        self.state = torch.zeros(2, sources, dtype=torch.int64)  # how many have ended, and whether it is done
        rows = -(-sources // given.slabs) * width * given.classes
        begin = list(prefix[0].tokens) if prefix else []
        banned, early = sorted({*asked.banned}), sorted({*asked.banned, asked.eos})
        self.held = [
            asked.first.contiguous(),
            asked.limits,
            torch.tensor([*banned, given.classes]),
            torch.tensor([*early, given.classes]),
            torch.tensor(begin, dtype=torch.int64),
            torch.ones(1, dtype=torch.float64) if asked.norm is None else asked.norm.contiguous(),
            torch.zeros(sources, width, dtype=torch.float64),
            torch.empty(sources * (1 + 2 * width), dtype=torch.int64),
            torch.empty(given.slabs, rows),
            torch.empty(given.slabs, 2 * self.longest + len(early) + 1 if grams else 0, dtype=torch.int64),
            torch.empty(given.slabs, 0 if asked.draw is None else 6 * given.classes, dtype=torch.float64),
        ]
        first, limits, never, never_early, begins, norm, logp, room, logits, past, chances = map(
            pointer, self.held
        )
        score, total, written, slot = map(pointer, self.table)
        kind, narrow = (GREEDY if asked.norm is None else BEAM), (1.0, 1.0, 0)
        if asked.draw is not None:
            degree, likeliest, share, _ = asked.draw
            kind, narrow = SAMPLED, (degree, share, likeliest if likeliest < given.classes else 0)
        ended, state = map(pointer, self.state)
        self.job = native.Searching(
            sources, width, kept, asked.nbest, given.classes, self.longest, given.slabs,
            kind, asked.eos, least, len(begin), prefix[0].free if prefix else 0,
            asked.enough, STOPS[asked.stop], grams, 0, 0, given.at, given.take, first, limits, never,
            never_early, begins, norm, logp, pointer(self.parent), pointer(self.token), score, total,
            written, slot, ended, state, room, 0, logits, rows, past, self.held[-2].shape[1], *narrow, None,
            chances,
        )  # fmt: skip

    def run(self) -> bool:
        """All steps, some in each call; False if the search has to be repeated."""
        steps, job = 1, self.job
        before = None if self.asked.draw is None else self.asked.draw.generator.get_state()
        while job.time < self.longest:
            job.steps = min(steps, self.longest - job.time)
            self.given.before(job.time + job.steps)
            uniform = self._uniform(job.steps)
            job.uniform = pointer(uniform)
            since = clock.perf_counter()
            native.call("weft_search", job)
            taken = max(clock.perf_counter() - since, 1e-6)
            steps = max(1, min(math.floor(SLICE_SECONDS * job.steps / taken), 4 * steps))
            job.time += job.steps
            least, most = self.state[1].aminmax()
            if int(most) == BROKEN or int(least):
                break
        well = int(self.state[1].max()) != BROKEN and bool((self.table.score[:, 0] > -INFINITY).all())
        if before is not None:
            self._rewind(before, well)
        return well

    def _uniform(self, steps: int) -> Tensor | None:
        """The random numbers of the next steps: [steps, B, W]."""
        if self.asked.draw is None:
            return None
        shape = (steps, len(self.asked.first), self.asked.width)
        return torch.rand(shape, generator=self.asked.draw.generator, dtype=torch.float64)

    def _rewind(self, before: Tensor, well: bool) -> None:
        """Leave the generator as the twin does, which draws for no step after the last."""
        assert self.asked.draw is not None
        self.asked.draw.generator.set_state(before)
        if well:
            self._uniform(int(self._lengths().max()))

    def _lengths(self) -> Tensor:
        """Tokens of every hypothesis, eos counted: [B, N]."""
        written = self.table.written
        return (written + (written < self.asked.limits[:, None])) * (self.table.score > -INFINITY)

    def result(self) -> Hypotheses:
        """As `as_hypotheses` gives them."""
        score, logp, written, slot = self.table
        sources, kept = score.shape
        tokens = torch.empty(sources, kept, self.longest, dtype=torch.int64)
        job = native.Reading(
            sources, self.asked.width, kept, self.longest, self.asked.eos, 1,
            *map(pointer, (self.parent, self.token, written, slot, tokens)),
        )  # fmt: skip
        native.call("weft_read_back", job)
        lengths = self._lengths()
        return Hypotheses(tokens[:, :, : int(lengths.max())], lengths, logp, score)
