"""Whether gradients vanish or explode, judged by measurements and never by a bound.

Read next: reach.py; train/monitors.py, which calls it at the end of training.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

Kind = Literal["vanishes", "explodes", "stable"]

LITTLE, MUCH = 0.01, 100.0
"""A reach below the first value is vanishing, above the second exploding."""

ADVICE: dict[Kind, str] = {
    "vanishes": "if the task needs what lies further back, take a gated cell with a higher forget_bias, an "
    "orthogonal recurrence, or attention",
    "explodes": "lower training.clip_norm or the learning rate, or keep the recurrence orthogonal",
}


class Verdict(NamedTuple):
    """What happens to the gradients of a layer, and a sentence that says it."""

    kind: Kind
    sentence: str


def verdict(measures: Sequence[Mapping[int, float]], *, name: str = "the recurrence") -> Verdict:
    """Whether gradients vanish, explode or are stable, with advice.

    Each lag is judged by its median over the later half of the measurements, to ignore the start of training.
    The gradient explodes if the reach exceeds 100 at some lag and vanishes if it is below 0.01 at the
    longest.
    """
    later = [one for one in measures if one][len(measures) // 2 :]
    lags = sorted({lag for one in later for lag in one})
    if not lags:
        return Verdict("stable", f"{name}: no earlier step was measured, so there is no verdict")
    norms = {lag: median(one[lag] for one in later if lag in one) for lag in lags}
    first, last = lags[0], lags[-1]
    highest = max(lags, key=lambda lag: norms[lag] if math.isfinite(norms[lag]) else math.inf)
    kind: Kind = "stable"
    if not norms[highest] <= MUCH:
        kind, last = "explodes", highest
    elif norms[last] < LITTLE:
        kind = "vanishes"
        last = next(lag for lag in lags if norms[lag] < LITTLE)
    shown = [first, last] if last > first else [first]
    numbers = ", ".join(f"{norms[lag]:.3g} at lag {lag}" for lag in shown)
    found = {"vanishes": "vanishes", "explodes": "explodes", "stable": "neither vanishes nor explodes"}[kind]
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
    return Verdict(kind, f"{name}: the gradient {found} (reach {numbers}){advice}")


def worst(verdicts: Mapping[str, Verdict]) -> Verdict:
    """The worst verdict: exploding, then vanishing, then stable; ties go to the first."""
    order: tuple[Kind, ...] = ("explodes", "vanishes", "stable")
    return min(verdicts.values(), key=lambda one: order.index(one.kind))
