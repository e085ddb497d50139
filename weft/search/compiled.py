"""Greedy search, sampling and beam search in compiled code (native/searching.cpp), many steps in one call.

It serves a step that is the `step` method of an object with `whole_step`, and the rules of step.py.
Everything else is left to the plain loops in greedy.py and beam.py, its twins: they find the same tokens,
with scores that differ by rounding. A search that fails is repeated by them, for their errors. A sampled
token is another one if its uniform number falls between the two roundings of a boundary, and so is what
follows it.
"""

import time as clock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from weft import native
from weft.native import WholeStep, jobs, pointer
from weft.search.hypotheses import Hypotheses
from weft.search.offered import Narrowing
from weft.search.step import LeastLength, NoRepeat, Prefix, SamplingRule, SearchRequest, Step
from weft.tree import State

INFINITY = float("inf")
MOST = 64
"""Most hypotheses of a source, as in native/searching.cpp."""
SLICE_SECONDS = 0.02
"""A call of compiled code takes about this long, so that a search can be stopped and others get a turn."""
_pace: "WeakKeyDictionary[Any, float]" = WeakKeyDictionary()
"""Seconds that a step of one row took last, by model: a guess of how many steps a first call can take."""
BEAM, GREEDY, SAMPLED = range(3)
STOPS = {"best": 0, "full": 1, "worst": 2, "never": 1}
NO_NORM = torch.ones(1, dtype=torch.float64)


def whole_search(step: Step, state: State, asked: SearchRequest) -> Hypotheses | None:
    """The hypotheses that compiled code or recorded steps find; None if the plain loops have to search."""
    if asked.recorded:
        from weft.search.captured import captured_search  # imported on demand: only a GPU gains by it

        return captured_search(step, state, asked)
    rules = asked.rules
    model: Any = getattr(step, "__self__", None)  # with `whole_step` compiled code takes its step
    if (
        getattr(model, "whole_step", None) is None
        or step != getattr(model, "step", None)
        or not len(asked.first)
    ):
        return None
    if native.loaded("searching").library is None or asked.width > MOST or asked.first.device.type != "cpu":
        return None
    if asked.draw is not None and not _draws(asked.draw):
        return None
    prefix = [rule for rule in rules if isinstance(rule, Prefix)]
    grams = [rule.size for rule in rules if isinstance(rule, NoRepeat)]
    least = [rule for rule in rules if isinstance(rule, LeastLength) and rule.eos == asked.eos]
    if len(prefix) > 1 or len(grams) > 1 or len(prefix) + len(grams) + len(least) < len(rules):
        return None
    longest = int(asked.limits.max())
    given: WholeStep | None = model.whole_step(state, asked.width, longest)
    if given is None:
        return None
    symbols = [asked.eos, *asked.banned, *(token for rule in prefix for token in rule.tokens)]
    symbols += map(int, asked.first.aminmax())  # compiled code would read past the end of the table
    if not all(0 <= symbol < given.classes for symbol in symbols):
        return None
    fewest = max((rule.tokens for rule in least), default=0)
    found = _Search(model, asked, given, prefix[0] if prefix else Prefix(()), fewest, sum(grams), longest)
    return found.result() if found.run() else None


def _draws(rule: SamplingRule) -> bool:
    """Whether compiled code draws so: it knows three settings."""
    how = rule.how
    known = Narrowing(temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)
    return known == how and rule.generator.device.type == "cpu"


class _Search:
    """The arguments of weft_search, and the tensors that hold its state; grams 0 allows all repetitions."""

    def __init__(
        self,
        model: object,
        asked: SearchRequest,
        given: WholeStep,
        prefix: Prefix,
        least: int,
        grams: int,
        longest: int,
    ) -> None:
        self.model, self.asked, self.given, self.longest = model, asked, given, longest
        sources, width, kept = len(asked.first), asked.width, asked.kept
        written, table = sources * longest * width, sources * kept
        begin = list(prefix.tokens)
        banned, early = sorted({*asked.banned}), sorted({*asked.banned, asked.eos})
        symbols = [*banned, given.classes], [*early, given.classes], begin
        rows = -(-sources // given.slabs) * width * given.classes
        past = 2 * longest + len(symbols[1]) if grams else 0
        drawn = 0 if asked.draw is None else given.slabs * 6 * given.classes
        norm = NO_NORM if asked.norm is None else asked.norm
        # parent, token, ended, state, written, slot, room, past; logp, score, sum, chances
        room = sources * (1 + 2 * width), given.slabs * past
        self.numbers = _zeros(torch.int64, written, written, sources, sources, table, table, *room)
        self.sums = _zeros(torch.float64, sources * width, table, table, drawn)
        self.sums[1].fill_(-INFINITY)
        self.held = [
            asked.first.contiguous(), asked.limits, norm.contiguous(), torch.empty(given.slabs, rows),
            *torch.tensor([*symbols[0], *symbols[1], *begin]).split([*map(len, symbols)]),
        ]  # fmt: skip
        first, limits, norms, logits, never, never_early, begins = map(pointer, self.held)
        parent, token, ended, state, lengths, slot, numbers, before = map(pointer, self.numbers)
        logp, score, total, chances = map(pointer, self.sums)
        kind, narrow = (GREEDY if asked.norm is None else BEAM), (1.0, 1.0, 0)
        if asked.draw is not None:
            how = asked.draw.how
            kind, narrow = (
                SAMPLED,
                (how.temperature, how.top_p, how.top_k if how.top_k < given.classes else 0),
            )
        self.job = jobs.Searching(
            sources, width, kept, asked.nbest, given.classes, longest, given.slabs,
            kind, asked.eos, least, len(begin), prefix.free,
            asked.enough, STOPS[asked.stop], grams, 0, 0, given.at, given.take, first, limits, never,
            never_early, begins, norms, logp, parent, token, score, total,
            lengths, slot, ended, state, numbers, 0, logits, rows, before, past, *narrow, None,
            chances,
        )  # fmt: skip

    def run(self) -> bool:
        """All steps, some in each call; False if the search has to be repeated."""
        job, rows = self.job, self.asked.width * len(self.asked.first)
        before = None if self.asked.draw is None else self.asked.draw.generator.get_state()
        pace = _pace.get(self.model, 1.0)  # seconds a row and step: the first call takes one step
        while job.time < self.longest and job.searched >= 0:
            job.steps = min(max(1, int(SLICE_SECONDS / (pace * rows))), self.longest - job.time)
            self.given.before(job.time + job.steps)
            uniform = self._uniform(job.steps)
            job.uniform = pointer(uniform)
            since = clock.thread_time()
            native.call("weft_search", job)
            job.time += job.steps
            done = len(self.asked.first) if job.time == 1 else job.steps * rows  # one hypothesis at first
            pace = _pace[self.model] = max((clock.thread_time() - since) / done, 1e-9)
            if not job.searched:
                break
        if before is not None:
            self._rewind(before, job.searched == 0)
        return job.searched == 0

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
        table = len(self.asked.first), self.asked.kept
        written, score = self.numbers[4].view(table), self.sums[1].view(table)
        return (written + (written < self.asked.limits[:, None])) * (score > -INFINITY)

    def result(self) -> Hypotheses:
        """As `as_hypotheses` gives them."""
        sources, kept, job = len(self.asked.first), self.asked.kept, self.job
        tokens = torch.empty(sources, kept, self.longest, dtype=torch.int64)
        read = jobs.ReadingJob(
            sources, self.asked.width, kept, self.longest, self.asked.eos, 1,
            job.parent, job.token, job.written, job.slot, pointer(tokens),
        )  # fmt: skip
        native.call("weft_read_back", read)
        lengths = self._lengths()
        score, logp = (sums.view(sources, kept) for sums in self.sums[1:3])
        return Hypotheses(tokens[:, :, : int(lengths.max())], lengths, logp, score)


def _zeros(dtype: torch.dtype, *sizes: int) -> tuple[Tensor, ...]:
    """Vectors of these sizes, side by side."""
    return torch.zeros(sum(sizes), dtype=dtype).split(sizes)
