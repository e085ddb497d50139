"""Which kernel runs: measured for a few milliseconds when sizes are first met, then kept; or forced.

There is no table of processors: on one MKL is the slower product, on another the compiled cells are. A run
writes `taken()` into its checkpoints and a resumed one hands it to `keep`, so that both add in one order
and resuming stays bit-equal. Forcing holds for the process, since batches are trained in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: linear.py, lstm.py.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, get_args

import torch

from weft.errors import ConfigError
from weft.probe import watching

Cells = Literal["auto", "native", "tiles", "torch", "operation", "written", "triton", "steps"]
"""auto: the fastest by probe; native: compiled code of ours; tiles: the same on a processor's tiles (AMX);
torch: without it, which is the faster of operation (torch's own, where it has one) and written
(back-propagation by hand); triton: kernels for a GPU; steps: the plain loop."""

Products = Literal["auto", "torch", "onednn", "tiles"]

COMPILED = ("auto", "native", "tiles")
"""The ways of cells with which compiled code serves what is no cell."""

ROUNDS = (3, 9)  # at least, at most, beside the first
BUDGET_SECONDS = 0.008
LEVEL = 1.05  # a way must be this much faster than the one named before it to be taken

_taken: dict[str, str] = {}
_why: dict[str, str] = {}
_lost: list[str] = []
_forced: dict[str, str] = {}
_lock = threading.RLock()


def forced(what: str) -> str:
    """The way that was asked for, "auto" if none: by `use`, else by WEFT_CELLS or WEFT_LINEAR.

    Args:
        what: "cells" or "linear".

    Raises:
        ConfigError: the environment names a way that does not exist.
    """
    name = _forced.get(what)
    if name is None:
        variable = f"WEFT_{what.upper()}"
        name = _forced[what] = check(variable, os.environ.get(variable) or "auto", what)
    return name


def check(place: str, name: str, what: str) -> str:
    """A way's name, if there is one of that name.

    Raises:
        ConfigError: there is none.
    """
    known = get_args(Cells if what == "cells" else Products)
    if name not in known:
        raise ConfigError(f"{place}: {name!r} came, one of {', '.join(known)} is needed")
    return name


@contextmanager
def use(*, cells: Cells | None = None, linear: Products | None = None) -> Iterator[None]:
    """Force a way inside the block, for the whole process.

    Example:
        >>> import torch
        >>> from weft.nn.kernels.linear import linear
        >>> with use(linear="torch"):
        ...     linear(torch.ones(1, 2), torch.ones(1, 2))
        tensor([[2.]])
    """
    before = dict(_forced)
    for what, name in (("cells", cells), ("linear", linear)):
        if name is not None:
            _forced[what] = check(what, name, what)
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)


def stepwise() -> bool:
    """Whether a cell must run step by step: a probe watches its gates, or the plain loop is forced."""
    return watching() or forced("cells") == "steps"


def traced() -> bool:
    """Whether torch records or transforms what runs here: then its own operations must serve."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or active is None or bool(active())


def choose(key: str, ways: Mapping[str, Callable[[], object]]) -> str:
    """The fastest way for a key; measured the first time.

    Args:
        key: what is computed, with the sizes, dtype and threads that matter.
        ways: by name, each does a small piece of the work; where two are level, the earlier one is taken.
    """
    name = _taken.get(key)
    if name is not None and name in ways:
        return name
    with _lock:
        if key in _taken and _taken[key] not in ways:
            _lost.append(f"{key}: {_taken[key]}")
        if _taken.get(key) not in ways:
            _taken[key], _why[key] = _fastest(ways)
        return _taken[key]


def known(key: str) -> str | None:
    """What was chosen for a key, None before the first time."""
    return _taken.get(key)


def taken() -> dict[str, str]:
    """Every choice of this process so far."""
    with _lock:
        return dict(sorted(_taken.items()))


def reasons() -> dict[str, str]:
    """For each choice that was measured here, the times."""
    with _lock:
        return dict(sorted(_why.items()))


def keep(choices: Mapping[str, str]) -> None:
    """Take over the choices of a run, whatever a probe would say now."""
    with _lock:
        _lost.clear()
        _why.clear()
        _taken.clear()
        _taken.update(choices)


def lost() -> list[str]:
    """Choices that were to be kept but whose way is not there any more; said once."""
    with _lock:
        said = list(_lost)
        _lost.clear()
        return said


def threads() -> int:
    """Threads that a kernel called here may use."""
    return torch.get_num_threads()


def _fastest(ways: Mapping[str, Callable[[], object]]) -> tuple[str, str]:
    if len(ways) == 1:
        return next(iter(ways)), "the only way here"
    if torch.are_deterministic_algorithms_enabled():  # a clock does not decide what is to come out twice
        return next(iter(ways)), "the first way, since training is deterministic"
    best = dict.fromkeys(ways, float("inf"))
    begun = time.perf_counter()
    for round_ in range(1 + ROUNDS[1]):
        for name, way in ways.items():
            start = _spent()
            way()
            spent = max(end - begin for begin, end in zip(start, _spent(), strict=True))
            if round_:  # the first call makes plans and fills caches
                best[name] = min(best[name], spent)
        if round_ >= ROUNDS[0] and time.perf_counter() - begun > BUDGET_SECONDS:
            break
    fastest = min(best.values())
    name = next(name for name, spent in best.items() if spent <= LEVEL * fastest)
    return name, ", ".join(f"{way} {spent * 1e3:.2f} ms" for way, spent in best.items())


def _spent() -> tuple[float, ...]:
    """Seconds of the processor, so that other programs do not decide: this thread's, and its share of all."""
    if threads() == 1:  # others of this process may do something else meanwhile
        return (time.thread_time(),)
    return time.thread_time(), time.process_time() / threads()
