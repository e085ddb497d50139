"""Switches that force a kernel, and measurements that choose one where none is forced.

The choice is measured rather than looked up by processor: on one machine MKL's product is the slower one, on
another the compiled cells are. Results are kept on disk (measured.py), so two runs on one machine use the
same kernels and add in the same order. A training run measures no later than its first update
(weft/train/kernels.py); a size that first appears afterwards gets the first way. Checkpoints store `taken()`,
and a resumed run passes it to `keep`. A forced way applies to the whole process, because batches are trained
in threads:

    with use(cells="torch", linear="torch"): ...
    WEFT_CELLS=native WEFT_LINEAR=onednn weft train ...

Read next: ways.py, the policy; linear.py, an operation that follows it.
"""

import itertools
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

Cells = Literal["auto", "native", "narrow", "tiles", "torch", "operation", "bptt", "triton", "steps"]
"""Recurrent layers. auto: the fastest one, as measured; native: Weft's compiled code; narrow: compiled code
that multiplies in bfloat16, under autocast; tiles: compiled code on the processor's tile unit (AMX);
torch: no compiled code, the faster of operation (torch's own, where it has one) and bptt (back-propagation
through time in torch operations); triton: GPU kernels; steps: the plain loop."""

Products = Literal["auto", "torch", "onednn", "tiles"]
"""Linear products."""

Fused = Literal["auto", "native", "tiles", "torch"]
"""Operations that compiled code computes in one pass: losses, additive attention, search steps. auto: as for
recurrent layers; torch: no compiled code; native: compiled code without tiles; tiles: a search multiplies
float32 on tiles for any number of rows."""

SWITCHES = {"cells": get_args(Cells), "linear": get_args(Products), "fused": get_args(Fused)}
"""Each switch and its values. Force one with `use`, or with the environment variable WEFT_<SWITCH>."""

OLD_NAMES = {"written": "bptt"}
"""Earlier names of ways, which runs and recipes of older versions still contain."""

SECONDS = {3: 0.3, 15: 0.02, 1: 3.0}  # a number of timed rounds is enough after so long
CLEAR = 1.5  # a way that is slower by this factor in three rounds, or in long ones, needs no further round
LONG_SECONDS = 0.1
LEVEL = 1.05  # a later way must be faster by this factor to win over an earlier one

# Private to torch. If it is missing, assume that a transform is active and use torch operations only.
_transforming = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_taken: dict[str, str] = {}
_why: dict[str, str] = {}
_met: dict[str, Callable[[], None]] = {}
_generation = 0  # of _taken
_phase: Literal["any", "first update", "fixed"] = "any"  # outside a training; in it; after its first update
_forced: dict[str, str] = {}
_lock = threading.RLock()


def forced(switch: str) -> str:
    """The way forced by `use`, else by the environment, else "auto".

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
    """The switches that are not "auto", as environment settings: ["WEFT_CELLS=torch"]."""
    names = {switch: _asked(switch) for switch in SWITCHES}
    return [f"{_variable(switch)}={name}" for switch, name in names.items() if name != "auto"]


def check(place: str, name: str, switch: str) -> str:
    """Check the name of a way; an old name is replaced by its current one.

    Args:
        place: where the name was given, for the error message.
        name: the name to check.
        switch: one of SWITCHES.

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
    """Whether torch compiles, traces or transforms this code, so only torch operations may run."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or _transforming()


def choose(key: str, ways: Mapping[str, Callable[[], object]]) -> str:
    """The fastest way for a key: as already measured by this process or on this machine, else measured now.

    Args:
        key: what is computed, with the sizes, dtype and threads that matter.
        ways: by name, in order of preference; each call does a small part of the work. Ties go to the first.
    """
    name = _taken.get(key)
    if name is not None and name in ways:
        return name
    with _lock:
        if _taken.get(key) not in ways:
            _taken[key], _why[key] = _decided(key, ways)
        return _taken[key]


def settle(key: str, name: str, why: str) -> None:
    """Record a choice that was made elsewhere, for the checkpoints."""
    with _lock:
        _taken[key], _why[key] = name, why


def known(key: str) -> str | None:
    """The way already chosen for a key in this process, or None."""
    return _taken.get(key)


def taken() -> dict[str, str]:
    """Every choice that this process has made so far, by key."""
    with _lock:
        return dict(sorted(_taken.items()))


def reasons() -> dict[str, str]:
    """The reason for each choice that this process made itself, by key."""
    with _lock:
        return dict(sorted(_why.items()))


def generation() -> int:
    """Changes whenever choices that were made may no longer hold."""
    return _generation


def keep(choices: Mapping[str, str]) -> None:
    """Replace all choices by those of a saved run; their keys are not measured again."""
    global _generation
    with _lock:
        _generation += 1
        _why.clear()
        _taken.clear()
        _taken.update((key, OLD_NAMES.get(name, name)) for key, name in choices.items())


@contextmanager
def training() -> Iterator[None]:
    """Start a training run with no choices, as in a new process; `fix` ends its measuring."""
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
    """Whether a training run is in its first update."""
    return _phase == "first update"


def meet(what: str, decide: Callable[[], None]) -> None:
    """While `meeting`: register an operation whose ways must be chosen for all of its sizes before `fix`.

    Args:
        what: its name; a second registration is ignored.
        decide: calls `choose` for each of its sizes, with the number of threads set at that time.
    """
    with _lock:
        _met.setdefault(what, decide)


def met() -> list[Callable[[], None]]:
    """The registered `decide` functions, sorted by name."""
    with _lock:
        return [decide for _, decide in sorted(_met.items())]


def fix() -> None:
    """Stop measuring until the training run ends; a new key gets its first way."""
    global _phase
    with _lock:
        _met.clear()
        _phase = "fixed"


def threads() -> int:
    """The number of threads that a kernel may use."""
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
    if torch.are_deterministic_algorithms_enabled():  # the same choice on every machine that has these ways
        return Measured(first, "the first way, since training is deterministic")
    if _phase == "fixed":
        return Measured(first, "the first way, since it first appeared after the first update")
    names = list(ways)
    kept = measured.find(key, names)
    if kept is None and measured.writable():
        kept = measured.keep(key, names, Measured(*_fastest(ways)))
    # If it cannot be stored, the next run would measure again and might choose differently.
    return kept or Measured(first, "the first way, since the cache directory cannot be written")


def _fastest(ways: Mapping[str, Callable[[], object]]) -> tuple[str, str]:
    best = dict.fromkeys(ways, float("inf"))
    left = dict(ways)
    begun = time.perf_counter()
    for round_ in itertools.count():  # the first one is a warm-up
        for name, way in left.items():
            start = _spent()
            way()
            spent = max(end - begin for begin, end in zip(start, _spent(), strict=True))
            if round_:
                best[name] = min(best[name], spent)
        if not round_:
            continue
        fastest, elapsed = min(best.values()), time.perf_counter() - begun
        if round_ >= 3 or elapsed > LONG_SECONDS:
            left = {name: way for name, way in left.items() if best[name] <= CLEAR * fastest}
        if len(left) == 1 or any(round_ >= enough and elapsed > after for enough, after in SECONDS.items()):
            break
    fastest = min(best.values())
    name = next(name for name, spent in best.items() if spent <= LEVEL * fastest)
    return name, ", ".join(f"{way} {spent * 1e3:.2f} ms" for way, spent in best.items())


def _spent() -> tuple[float, ...]:
    """CPU seconds of this thread, and of the process per thread; other programs do not affect them."""
    if threads() == 1:  # other threads of this process may be doing unrelated work
        return (time.thread_time(),)
    return time.thread_time(), time.process_time() / threads()
