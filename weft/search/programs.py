"""What a search on a GPU records and replays: one step of the model, and one choice of tokens.

`Chooser` is a pure function of tensors, for beams or for rows that are written one by one; `Program` holds
the tensors that never move, and on CUDA the two graphs; `Programs` are those of a model, by shape. The rules
of CUDA graphs are kept so: nothing in a step asks for a value or makes a tensor from Python's numbers; all
tensors of a graph live as long as it does; random numbers are drawn outside; weights that moved discard all
programs. Read next: captured.py, the search.
"""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from weft.search import filters
from weft.search.beams import Beams, cut, done_sources, ends, extend, finish, start_beams
from weft.search.candidates import best_candidates, best_tokens
from weft.search.step import ROUNDING, SearchRequest, Step
from weft.tree import State, leaves, reorder, tree_map

INFINITY = float("inf")

MOST_PROGRAMS = 64
"""Programs kept of a model; each holds its states and its graphs' memory."""


class Constants(NamedTuple):
    """What stays the same during a search."""

    norm: Tensor  # [L + 1] float64, what log-probabilities are divided by, by length
    forbidden: Tensor  # [V] bool, tokens never chosen


class BeamBoard(NamedTuple):
    """The tensors of a beam search; axis 0 is the source."""

    beams: Beams
    parents: Tensor  # [B, L, W] int64, the parent of each hypothesis at each step
    tokens: Tensor  # [B, L, W] int64
    done: Tensor  # [B] bool
    failed: Tensor  # [B] bool, a log-probability is NaN or above 0

    @property
    def source(self) -> Tensor:
        """[B] int64."""
        return self.beams.source

    @property
    def token(self) -> Tensor:
        """The tokens that are fed next, [B, W]."""
        return self.beams.token


class RowBoard(NamedTuple):
    """The tensors of greedy search and sampling; axis 0 is the source."""

    source: Tensor  # [B] int64
    limit: Tensor  # [B] int64
    token: Tensor  # [B, W] int64, fed next
    total: Tensor  # [B, W] float64, log-probability
    lengths: Tensor  # [B, W] int64
    ended: Tensor  # [B, W] bool
    tokens: Tensor  # [B, L, W] int64
    done: Tensor  # [B] bool
    failed: Tensor  # [B] bool, a log-probability is NaN or above 0, or no token is possible


Board = BeamBoard | RowBoard


class Chooser:
    """How tokens are chosen, on boards with room for `length` tokens."""

    def __init__(self, asked: SearchRequest, length: int) -> None:
        self.asked = asked
        self.length = length
        self.is_beam = asked.norm is not None
        draw = None if asked.draw is None else asked.draw.how
        self.key = (asked.eos, asked.width, asked.nbest, asked.kept, asked.enough, asked.stop, draw, length)

    def board(self) -> Board:
        """Before the first step; a beam has one hypothesis for each source."""
        asked, first = self.asked, self.asked.first
        size = len(first), self.length, asked.width
        tokens = torch.full(size, asked.eos, dtype=torch.int64, device=first.device)
        no = torch.zeros(len(first), dtype=torch.bool, device=first.device)
        if self.is_beam:
            beams = start_beams(first, asked.limits, asked.kept)
            return BeamBoard(beams, torch.zeros_like(tokens), tokens, no, no.clone())
        fed = first[:, None].repeat(1, asked.width)
        ended = torch.zeros_like(fed, dtype=torch.bool)
        total, lengths = torch.zeros_like(fed, dtype=torch.float64), torch.zeros_like(fed)
        everyone = torch.arange(len(first), device=first.device)
        return RowBoard(everyone, asked.limits, fed, total, lengths, ended, tokens, no, no.clone())

    def constants(self, vocabulary: int) -> Constants:
        """The constants for a vocabulary of this size."""
        device = self.asked.first.device
        norm = torch.ones(self.length + 1, dtype=torch.float64, device=device)
        if self.asked.norm is not None:
            norm[: len(self.asked.norm)] = self.asked.norm
        forbidden = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        if self.asked.banned:
            forbidden[torch.tensor(self.asked.banned, device=device)] = True
        return Constants(norm, forbidden)

    def choose(
        self, board: Any, logp: Tensor, time: Tensor, uniform: Tensor | None, constants: Constants
    ) -> tuple[Board, Tensor | None]:
        """The board after a step by logp [N, V], and which row each row of the state continues, or None."""
        worst = logp.amax(1).view(board.token.shape)  # NaN if there is one
        logp = logp.masked_fill(constants.forbidden, -INFINITY)
        bad = ~(worst <= ROUNDING)
        if self.is_beam:
            return self._beam(board, logp, time, bad, constants.norm)
        return self._rows(board, logp, time, bad, uniform), None

    def _beam(
        self, board: BeamBoard, logp: Tensor, time: Tensor, bad: Tensor, norm: Tensor
    ) -> tuple[BeamBoard, Tensor | None]:
        asked, beams = self.asked, board.beams
        bad = bad & (beams.logp > -INFINITY)
        found = best_candidates(logp, beams.logp, 2 * asked.width, waits=False)
        is_eos = found.token == asked.eos
        beams = finish(beams, found, ends(found, is_eos, asked.width), time, norm, None)
        beams, _ = extend(beams, found, is_eos, asked.width)
        done = done_sources(beams, time, norm, enough=asked.enough, nbest=asked.nbest, stop=asked.stop)
        beams = cut(beams, time, norm)
        done = board.done | done | (beams.limit <= time)
        beams = beams._replace(logp=beams.logp.masked_fill(done[:, None], -INFINITY))
        parents = board.parents.index_copy_(1, time - 1, beams.parent[:, None])
        tokens = board.tokens.index_copy_(1, time - 1, beams.token[:, None])
        rows = torch.arange(len(done), device=done.device)[:, None] * asked.width + beams.parent
        return BeamBoard(beams, parents, tokens, done, board.failed | bad.any(1)), rows.flatten()

    def _rows(
        self, board: RowBoard, logp: Tensor, time: Tensor, bad: Tensor, uniform: Tensor | None
    ) -> RowBoard:
        shape, draw = board.token.shape, self.asked.draw
        if draw is None:
            value, token = best_tokens(logp)
            impossible = value == -INFINITY
        else:
            kept = filters.narrow(logp.double(), draw.how, waits=False)
            impossible = kept.amax(1) == -INFINITY
            assert uniform is not None
            token = filters.invert(kept.softmax(1), uniform.reshape(-1, 1))
            token = token.clamp(max=logp.shape[1] - 1)  # of NaN it is V
            value = logp.gather(1, token[:, None])[:, 0]
        ended = board.ended
        token = token.view(shape).masked_fill(ended, self.asked.eos)
        total = board.total + value.view(shape).double().masked_fill(ended, 0.0)
        failed = board.failed | ((bad | impossible.view(shape)) & ~ended).any(1)
        lengths = board.lengths + ~ended
        ended = ended | (token == self.asked.eos) | (board.limit <= time)[:, None]
        tokens = board.tokens.index_copy_(1, time - 1, token[:, None])
        return RowBoard(
            board.source, board.limit, token, total, lengths, ended, tokens, board.done | ended.all(1), failed
        )


class Program:
    """A step on tensors that never move; those of the first search give their shapes.

    After a step, `state` and `board` are its result and logp [N, V] that of `read`, which rules may change
    before `choose`. `rows` [N] says which row each one continues, None for itself. `uniform` [B, W] float64
    is to be filled before each `choose` of sampling.
    """

    def __init__(self, chooser: Chooser, state: State, board: Board, constants: Constants) -> None:
        with torch.inference_mode(False):  # what is made in inference mode could not be written outside it
            self.state, self.board, self.constants = (
                tree_map(lambda leaf: torch.empty_like(leaf, memory_format=torch.contiguous_format), tree)
                for tree in (state, board, constants)
            )
            self.time = torch.ones(1, dtype=torch.int64, device=board.done.device)
            self.uniform = torch.zeros_like(board.token, dtype=torch.float64)
        self.chooser = chooser
        self.logp, self._next = self.uniform, state
        self.rows: Tensor | None = None
        self._graphs: list[Any] = []

    @property
    def sources(self) -> int:
        """Rows of the board."""
        return len(self.board.done)

    def load(self, state: State, board: Board, constants: Constants, time: int) -> None:
        """Begin with these tensors; `time` is the number of the next step."""
        for mine, new in ((self.state, state), (self.board, board), (self.constants, constants)):
            _write(mine, new)
        self.time.fill_(time)

    def read(self, step: Step) -> None:
        """Compute `logp`."""
        if self._graphs:
            self._graphs[0].replay()
        else:
            self._read(step)

    def choose(self) -> None:
        """Choose tokens by `logp`, and go to the next state."""
        if self._graphs:
            self._graphs[1].replay()
        else:
            self._choose()

    def fits(self, step: Step) -> bool:
        """Whether a step leaves the shapes of the state as they are."""
        self._read(step)
        return signature(self._next) == signature(self.state)

    def record(self, step: Step, pool: Any) -> None:
        """Record both graphs, on CUDA; the tensors hold nothing useful afterwards.

        The kernels run twice before, on a stream of their own, so that libraries are loaded and tuned. All
        programs of a model share a pool of memory: what one leaves there is read before another runs.
        """
        device = self.time.device
        if device.type == "cuda" and not self._graphs:
            with torch.cuda.device(device):
                self._record(step, pool, device)

    def _record(self, step: Step, pool: Any, device: torch.device) -> None:
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(2):
                self.time.fill_(1)
                self._read(step)
                self._choose()
        torch.cuda.current_stream(device).wait_stream(side)
        self.time.fill_(1)
        graphs: list[Any] = []
        for function in (lambda: self._read(step), self._choose):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                function()
            graphs.append(graph)
        self._graphs = graphs

    def _read(self, step: Step) -> None:
        with torch.inference_mode(False), torch.no_grad(), _without_cache(self.time.device.type):
            self.logp, self._next = step(self.board.token.flatten(), self.state)

    def _choose(self) -> None:
        uniform = None if self.chooser.asked.draw is None else self.uniform
        with torch.inference_mode(False), torch.no_grad():
            board, self.rows = self.chooser.choose(self.board, self.logp, self.time, uniform, self.constants)
            state = self._next
            if self.rows is not None and board.token.shape[1] > 1:
                state = reorder(state, self.rows)
            _write(self.state, state)
            _write(self.board, board)
            self.time += 1


class Programs:
    """The programs of one model, the last used ones."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._kept: OrderedDict[Any, Program | None] = OrderedDict()
        self._weights: tuple[int, ...] = ()
        self._pool: Any = None

    def check_weights(self, model: Any) -> None:
        """Forget all programs if the weights of the model have moved: graphs read their memory."""
        module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
        places = () if module is None else tuple(weight.data_ptr() for weight in module.parameters())
        if places != self._weights:
            self._kept.clear()
            self._weights = places

    def open(
        self, step: Step, chooser: Chooser, state: State, board: Board, constants: Constants, time: int
    ) -> Program | None:
        """The program for tensors of these shapes, with them; None if the step changes the shapes."""
        kind = board.done.device.type
        mode = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        key = (chooser.key, mode, signature(state), signature(board), signature(constants))
        found = self._kept.get(key)
        if key not in self._kept:
            found = Program(chooser, state, board, constants)
            found.load(state, board, constants, time)
            found = found if found.fits(step) else None
        elif found is not None:  # recorded when its shapes come a second time
            if self._pool is None and kind == "cuda":
                self._pool = torch.cuda.graph_pool_handle()
            found = _recorded(found, step, self._pool, lambda to: to.load(state, board, constants, time))
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_PROGRAMS:
            self._kept.popitem(last=False)
        if found is not None:
            found.load(state, board, constants, time)
        return found


def _recorded(program: Program, step: Step, pool: Any, load: Callable[[Program], None]) -> Program | None:
    """The program with its graphs, if they do what the step does; else None."""
    try:
        found = []
        for _ in range(2):
            load(program)
            program.logp.fill_(torch.nan)  # a graph that computes nothing would leave it so
            program.read(step)
            program.choose()
            found.append([leaf.clone() for leaf in leaves(program.board) if leaf.is_floating_point()])
            program.record(step, pool)
        pairs = zip(*found, strict=True)
        if not all(torch.allclose(one, two, rtol=1e-2, atol=1e-2) for one, two in pairs):
            raise RuntimeError("a recorded step differed from the step itself")
    except RuntimeError as error:  # also a part of the model that a graph cannot hold
        first = str(error).partition("\n")[0]
        warnings.warn(f"searches of this model run step by step on this GPU: {first}", stacklevel=2)
        return None
    return program


_programs: "WeakKeyDictionary[Any, Programs]" = WeakKeyDictionary()
_opening = threading.Lock()


def programs_of(model: Any) -> Programs:
    """The programs of a model."""
    with _opening:
        return _programs.setdefault(model, Programs())


def signature(tree: State) -> tuple[tuple[torch.Size, torch.dtype], ...]:
    """The shape and dtype of every tensor of a tree."""
    return tuple((leaf.shape, leaf.dtype) for leaf in leaves(tree))


def _without_cache(kind: str) -> AbstractContextManager[object]:
    """Autocast as it is, but without its cache: a graph would read casts that are gone when it ends."""
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return nullcontext()
    return torch.autocast(kind, dtype=torch.get_autocast_dtype(kind), cache_enabled=False)


def _write(mine: State, new: State) -> None:
    """Copy a tree into tensors that never move; a tensor that is there already stays."""
    pairs = [(old, found) for old, found in zip(leaves(mine), leaves(new), strict=True) if old is not found]
    homes = {leaf.untyped_storage().data_ptr() for leaf in leaves(mine)}
    ready = [found.clone() if found.untyped_storage().data_ptr() in homes else found for _, found in pairs]
    for (old, _), found in zip(pairs, ready, strict=True):
        old.copy_(found)
