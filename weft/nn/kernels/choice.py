"""Switches that force a kernel, and what was measured where none is forced.

No table of processors decides: on one machine MKL is the slower product, on another the compiled cells are.
What was measured is kept on disk (measured.py), so that two runs on one machine use the same kernels and add
in the same order. A training measures in its first update at the latest (weft/train/kernels.py); a size that
it meets afterwards gets the first way. Its checkpoints hold `taken()`, which a resumed run hands to `keep`.
A forced way holds for the whole process, since batches are trained in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: ways.py, the policy; linear.py, an operation that follows it.
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

Cells = Literal["auto", "native", "tiles", "torch", "operation", "bptt", "triton", "steps"]
"""Recurrent layers. auto: the fastest, measured; native: Weft's compiled code; tiles: the same on the
processor's tiles (AMX); torch: without compiled code, the faster of operation (torch's own, where it has one)
and bptt (back-propagation through time in torch's operations); triton: kernels for a GPU; steps: the plain
loop."""

Products = Literal["auto", "torch", "onednn", "tiles"]
"""Linear products."""

Fused = Literal["auto", "native", "tiles", "torch"]
"""Operations that compiled code does in one pass: losses, additive attention, steps of a search. auto: as the
recurrent layers; torch: none of them; native: without tiles; tiles: a search multiplies on tiles only."""

SWITCHES = {"cells": get_args(Cells), "linear": get_args(Products), "fused": get_args(Fused)}
"""What can be forced: by `use`, or by an environment variable, WEFT_ and the name in capitals."""

OLD_NAMES = {"written": "bptt"}
"""Names of ways in runs and recipes of earlier versions."""

ROUNDS = (3, 9)  # at least, at most, beside the first
BUDGET_SECONDS = 0.008
LEVEL = 1.05  # a way is taken before an earlier one only if it is this much faster

# Private to torch; without it every operation must be torch's own.
_transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_taken: dict[str, str] = {}
_why: dict[str, str] = {}
_met: dict[str, Callable[[], None]] = {}
_phase: Literal["any", "first update", "fixed"] = "any"  # outside a training; in it; after its first update
_forced: dict[str, str] = {}
_lock = threading.RLock()


def forced(switch: str) -> str:
    """The way that was asked for, "auto" if none: by `use`, else by the environment.

    Args:
        switch: one of SWITCHES.

    Raises:
        ConfigError: the environment names an unknown way.
    """
    name = _asked(switch)
    if name == "auto" and switch == "fused":
        name = _asked("cells")
        return name if name in SWITCHES["fused"] else "torch"
    return name


def switched() -> list[str]:
    """The switches that force a way, as the environment would say it: ["WEFT_CELLS=torch"]."""
    names = {switch: _asked(switch) for switch in SWITCHES}
    return [f"{_variable(switch)}={name}" for switch, name in names.items() if name != "auto"]


def check(place: str, name: str, switch: str) -> str:
    """The name of a way, checked; an old name gives the present one.

    Raises:
        ConfigError: the switch has no such way.
    """
    name = OLD_NAMES.get(name, name)
    if name not in SWITCHES[switch]:
        raise ConfigError(f"{place}: expected one of {', '.join(SWITCHES[switch])}, got {name!r}")
    return name


@contextmanager
def use(
    *, cells: Cells | None = None, linear: Products | None = None, fused: Fused | None = None
) -> Iterator[None]:
    """Force a way inside the block, for the whole process.

    Example:
        >>> import torch
        >>> from weft.nn.kernels.linear import linear
        >>> with use(linear="torch"):
        ...     linear(torch.ones(1, 2), torch.ones(1, 2))
        tensor([[2.]])
    """
    before = dict(_forced)
    for switch, name in (("cells", cells), ("linear", linear), ("fused", fused)):
        if name is not None:
            _forced[switch] = check(switch, name, switch)
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)


def traced() -> bool:
    """Whether torch records or transforms what runs here, so that only its own operations may be used."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or _transforming()


def choose(key: str, ways: Mapping[str, Callable[[], object]]) -> str:
    """The fastest way for a key: known from this process or this machine, else measured now.

    Args:
        key: what is computed, with the sizes, dtype and threads that matter.
        ways: by name; each does a small piece of the work. Of two equally fast ones the earlier is taken.
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
    """Take over the choices of a run; nothing is measured again for them."""
    with _lock:
        _why.clear()
        _taken.clear()
        _taken.update((key, OLD_NAMES.get(name, name)) for key, name in choices.items())


@contextmanager
def training() -> Iterator[None]:
    """A training starts without any choice, as if in a new process; `fix` ends its measuring."""
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
    """While `meeting`: note something that must be decided for all of its sizes before `fix`.

    Args:
        what: its name; noted once.
        decide: calls `choose` for each of its sizes, with the number of threads set at that time.
    """
    with _lock:
        _met.setdefault(what, decide)


def met() -> list[Callable[[], None]]:
    """What was noted, in the order of the names."""
    with _lock:
        return [decide for _, decide in sorted(_met.items())]


def fix() -> None:
    """Until the end of the training nothing more is measured: anything new gets the first way."""
    global _phase
    with _lock:
        _met.clear()
        _phase = "fixed"


def threads() -> int:
    """Threads that a kernel called here may use."""
    return torch.get_num_threads()


def _asked(switch: str) -> str:
    name = _forced.get(switch)
    if name is None:
        variable = _variable(switch)
        name = _forced[switch] = check(variable, os.environ.get(variable) or "auto", switch)
    return name


def _variable(switch: str) -> str:
    return f"WEFT_{switch.upper()}"


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
    # A choice that cannot be kept would be measured again by the next run, perhaps with another result.
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
    """CPU seconds, so that other programs have no influence: of this thread, and its share of the process."""
    if threads() == 1:  # the other threads of this process may be busy with something else
        return (time.thread_time(),)
    return time.thread_time(), time.process_time() / threads()
