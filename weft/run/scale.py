"""`training.scale: gpu`: what of a recipe changes so that a GPU has enough to compute in every update.

The shipped recipes have batches for a CPU. With fewer and larger updates, numbers that count updates shrink,
and the learning rate grows by the square root (Malladi et al. 2022, "On the SDEs and scaling rules for
adaptive gradient algorithms").
"""

import math
from collections.abc import Mapping
from typing import Any

TOKENS, ROWS = 16_000, 512
"""Target tokens an update at least; rows in tasks whose rows are not pieces of text."""

COUNTS_UPDATES = ("max_updates", "validate_every", "log_every", "freeze_updates")


def for_gpu(recipe: Mapping[str, Any]) -> list[str]:
    """Overrides that make the updates of a recipe large enough for a GPU; [] if they are.

    The batches of an update become one.

    Args:
        recipe: with every default.

    Example:
        >>> training = {"accumulate": 2, "max_updates": 800, "optimiser": {"use": "adamw", "lr": 0.001}}
        >>> for_gpu({"data": {"batch_tokens": 2000}, "training": training})[:3]
        ['training.accumulate=1', 'data.batch_tokens=16000', 'training.max_updates=200']
    """
    data, training = recipe["data"], recipe["training"]
    parts, tokens, rows = training["accumulate"], data.get("batch_tokens"), data.get("batch_rows")
    if not (tokens or rows):
        return []
    least = TOKENS if tokens or data.get("length") else ROWS
    before = parts * (tokens or rows * data.get("length", 1))
    factor = max(1.0, least / before)
    if parts == 1 and factor == 1:
        return []
    found = ["training.accumulate=1"]
    for key, value in (("batch_tokens", tokens), ("batch_rows", rows)):
        found += [f"data.{key}={round(value * parts * factor)}"] if value else []
    counts = {name: training.get(name) for name in COUNTS_UPDATES}
    counts["schedule.warmup"] = (training.get("schedule") or {}).get("warmup")
    found += [f"training.{name}={max(1, round(n / factor))}" for name, n in counts.items() if n]
    rate = training["optimiser"]["lr"] * math.sqrt(factor)
    return [*found, f"training.optimiser.lr={rate:.3g}"] if factor > 1 else found
