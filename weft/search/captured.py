"""Searches on a GPU: a step is recorded as CUDA graphs and replayed, so the card does not wait for Python.

A graph replays the same kernels on the same memory. So the state of the model and of the search lies in
tensors that never move (`Program`), for one of a few numbers of sources (GRID) and lengths (`fixed` of a
decoder); rows that are not needed repeat the first source. A step asks for no value of a tensor: which
sources are done is read every few steps, then finished sources leave. A longer text continues in the program
of the next length.

It serves a step that is the `step` method of an object with `fixed`, and every rule of step.py. Everything
else, and a search that fails, is left to the plain loops in greedy.py and beam.py, its twins: they find the
same tokens, with scores that differ by rounding. On a CPU the same code runs without graphs, for tests. Read
next: programs.py, what is recorded; beams.py, the step of a beam.
"""

from typing import Any

import torch
from torch import Tensor

from weft.search.beams import BeamAdditions, as_hypotheses
from weft.search.hypotheses import Hypotheses
from weft.search.programs import BeamBoard, Board, Chooser, Constants, Program, Programs, programs_of
from weft.search.step import SearchRequest, Step, checked_step
from weft.tree import State, doubled, fan, keep_sources, leaves, like, take, tree_map

READ_EVERY = 8
"""Steps between two looks at what is done: each look makes Python wait for the card."""

GRID = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
"""Numbers of sources of a program: few, so that the same ones are used again."""

LENGTHS = 32
"""Most tokens that a program writes, at least; each further one has room for twice as many."""


def captured_search(step: Step, state: State, asked: SearchRequest) -> Hypotheses | None:
    """The hypotheses that captured steps find; None if the plain loops have to search."""
    model: Any = getattr(step, "__self__", None)
    if getattr(model, "fixed", None) is None or step != getattr(model, "step", None) or not len(asked.first):
        return None
    if torch.is_grad_enabled():
        return None
    chance = None if asked.draw is None else asked.draw.generator
    before = None if chance is None else chance.get_state()
    programs = programs_of(model)
    with programs.lock:
        search = _Search(model, programs, step, asked)
        found = search.run(state)
    if chance is not None and before is not None:  # as the twin leaves it, which draws for no step too many
        chance.set_state(before)
        for _ in range(0 if found is None else int(found.lengths.max())):
            search.uniform()
    return found


class _Search:
    """A search that is going on."""

    def __init__(self, model: Any, programs: Programs, step: Step, asked: SearchRequest) -> None:
        self.model, self.programs, self.rules, self.asked = model, programs, asked.rules, asked
        self.step = step
        self.longest = int(asked.limits.max())
        self.chooser = Chooser(asked, doubled(LENGTHS, self.longest))
        self.written: Tensor | None = None  # [N, t], for rules

    def run(self, state: State) -> Hypotheses | None:
        """All steps; None if the plain loops have to search."""
        state, board, constants = self._first(state)
        whole = tree_map(Tensor.clone, board)  # of all sources
        program, real, time, room = None, len(board.done), 1, 0
        while True:
            if bool(board.failed[:real].any()):
                return None
            going = (~board.done[:real]).nonzero().squeeze(1)
            if time >= self.longest or not len(going):
                return self._result(_with(whole, board, real))
            size = next((size for size in GRID if size >= len(going)), len(going))
            if program is None or not room or size < program.sources:
                whole = _with(whole, board, real)
                rows = torch.cat([going, going.new_zeros(size - len(going))])
                state, board = keep_sources(state, rows, self.asked.width), take(board, rows)
                board.done[len(going) :] = True
                if self.written is not None:
                    self.written = keep_sources(self.written, rows, self.asked.width)
                if not room:
                    fixed = self.model.fixed(state, self.asked.width, self.longest - time)
                    if fixed is None:
                        return None
                    state, room = fixed
                program = self.programs.open(self.step, self.chooser, state, board, constants, time + 1)
                if program is None:
                    return None
                state, board, real = program.state, program.board, len(going)
            steps = min(READ_EVERY, self.longest - time, room)
            for _ in range(steps):
                self._step(program, board)
            time, room = time + steps, room - steps

    def _first(self, state: State) -> tuple[State, Board, Constants]:
        """The first step, which has one row for each source of a beam, as the twins take it."""
        asked, beam = self.asked, self.chooser.is_beam
        board = self.chooser.board()
        state = state if beam else fan(state, asked.width)
        token = board.token.flatten()
        self.programs.check_weights(self.model)
        logp, state = checked_step(self.step, token, state, asked.eos, asked.banned)
        if self.rules:
            self.written = token.new_zeros(len(token), 0)
        logp = self._ruled(logp)
        constants = self.chooser.constants(logp.shape[1])
        time = torch.ones(1, dtype=torch.int64, device=token.device)
        board, _ = self.chooser.choose(board, logp, time, self.uniform(), constants)
        if beam:
            state = fan(state, asked.width)
            self.written = None if self.written is None else fan(self.written, asked.width)
        return state, board, constants

    def _step(self, program: Program, board: Board) -> None:
        if (pause := getattr(self.model, "pause", None)) is not None:
            pause()
        if self.written is not None:
            self.written = torch.cat([self.written, board.token.reshape(-1, 1)], 1)
        program.read(self.step)
        if self.written is not None:
            program.logp.copy_(self._ruled(program.logp))
        if (uniform := self.uniform()) is not None:
            program.uniform.copy_(uniform[board.source])
        program.choose()
        if self.written is not None and program.rows is not None:
            self.written = self.written.index_select(0, program.rows)

    def _ruled(self, logp: Tensor) -> Tensor:
        for rule in self.rules:
            assert self.written is not None
            logp = rule(logp, self.written)
        return logp

    def uniform(self) -> Tensor | None:
        """The random numbers of a step, [B, W] for the whole batch, as the twin draws them."""
        if self.asked.draw is None:
            return None
        chance, first = self.asked.draw.generator, self.asked.first
        rows = len(first) * self.asked.width
        drawn = torch.rand(rows, 1, generator=chance, device=chance.device, dtype=torch.float64)
        return drawn.view(-1, self.asked.width).to(first.device)

    def _result(self, whole: Board) -> Hypotheses:
        if isinstance(whole, BeamBoard):
            everyone = torch.arange(len(whole.done), device=whole.done.device)
            records = zip(whole.parents.unbind(1), whole.tokens.unbind(1), strict=True)
            steps = [BeamAdditions(everyone, parent, token) for parent, token in records]
            return as_hypotheses(
                whole.beams.finished, self.asked.limits, steps[: self.longest], self.asked.eos
            )
        tokens = whole.tokens.transpose(1, 2)[..., : int(whole.lengths.max())]
        return Hypotheses(tokens, whole.lengths, whole.total, whole.total.clone())


def _with(whole: Board, board: Board, real: int) -> Board:
    """The board of all sources with the first `real` of another one at their places."""
    places = board.source[:real]
    found = zip(leaves(whole), leaves(board), strict=True)
    return like(whole, [old.index_copy(0, places, new[:real]) for old, new in found])  # type: ignore[no-any-return]
