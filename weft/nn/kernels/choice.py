"""Which kernel runs: measured once on a machine, then kept; or forced.

There is no table of processors: on one MKL is the slower product, on another the compiled cells are. What
was measured is kept on disk (measured.py), so that two runs on one machine take the same kernels and add in
the same order. A training measures in its first update at the latest (weft/train/kernels.py); a size that it
meets afterwards gets the first way. Its checkpoints hold `taken()`, which a resumed run hands to `keep`.
Forcing holds for the process, since batches are trained in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: linear.py, cells/operations/lstm.py.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, get_args

import torch

from weft.errors import ConfigError
from weft.nn.kernels import measured
from weft.nn.kernels.measured import Measured
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
_met: dict[str, Callable[[], None]] = {}
_phase: Literal["any", "first update", "fixed"] = "any"  # outside a training; in it; after its first update
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
        raise ConfigError(f"{place}: expected one of {', '.join(known)}, got {name!r}")
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
    """The way for a key: this process's or this machine's; measured if there is none yet.

    Args:
        key: what is computed, with the sizes, dtype and threads that matter.
        ways: by name, each does a small piece of the work; where two are level, the earlier one is taken.
    """
    name = _taken.get(key)
    if name is not None and name in ways:
        return name
    with _lock:
        if _taken.get(key) not in ways:
            _taken[key], _why[key] = _decided(key, ways)
        return _taken[key]


def known(key: str) -> str | None:
    """What was chosen for a key, None before the first time."""
    return _taken.get(key)


def taken() -> dict[str, str]:
    """Every choice of this process so far."""
    with _lock:
        return dict(sorted(_taken.items()))


def reasons() -> dict[str, str]:
    """For each choice that was made here, the reason."""
    with _lock:
        return dict(sorted(_why.items()))


def keep(choices: Mapping[str, str]) -> None:
    """Take over the choices of a run, whatever a probe would say now."""
    with _lock:
        _why.clear()
        _taken.clear()
        _taken.update(choices)


@contextmanager
def training() -> Iterator[None]:
    """A training begins with no choice made, as a process of its own would; `fix` ends its measuring."""
    global _phase
    with _lock:
        before, _phase = (dict(_taken), _phase), "first update"
        keep({})
    try:
        yield
    finally:
        with _lock:
            _met.clear()
            keep(before[0])
            _phase = before[1]


def meeting() -> bool:
    """Whether a training is in its first update."""
    return _phase == "first update"


def meet(what: str, decide: Callable[[], None]) -> None:
    """While `meeting`: note something whose every size is to be decided before `fix`.

    Args:
        what: is noted once.
        decide: calls `choose` for each of its sizes, in the number of threads that is set then.
    """
    with _lock:
        _met.setdefault(what, decide)


def met() -> list[Callable[[], None]]:
    """What was noted, in the order of the names."""
    with _lock:
        return [decide for _, decide in sorted(_met.items())]


def fix() -> None:
    """From here to the end of the training, no clock decides: what is new gets the first way."""
    global _phase
    with _lock:
        _met.clear()
        _phase = "fixed"


def threads() -> int:
    """Threads that a kernel called here may use."""
    return torch.get_num_threads()


def _decided(key: str, ways: Mapping[str, Callable[[], object]]) -> Measured:
    first = next(iter(ways))
    if len(ways) == 1:
        return Measured(first, "the only way here")
    if torch.are_deterministic_algorithms_enabled():  # the same on every machine with these ways
        return Measured(first, "the first way, since training is deterministic")
    if _phase == "fixed":
        return Measured(first, "the first way, since it was first met after the first update")
    names = list(ways)
    kept = measured.find(key, names)
    if kept is None and measured.writable():
        kept = measured.keep(key, names, Measured(*_fastest(ways)))
    # What cannot be kept would be measured anew by the next run, perhaps with another result.
    return kept or Measured(first, "the first way, since the cache directory cannot be written")


def _fastest(ways: Mapping[str, Callable[[], object]]) -> tuple[str, str]:
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
