"""`training.scale: gpu`: what of a recipe changes so that a GPU has enough to compute in every update.

The shipped recipes have batches for a CPU. With fewer and larger updates, numbers that count updates shrink,
and the learning rate grows by the square root (Malladi et al. 2022, "On the SDEs and scaling rules for
adaptive gradient algorithms").
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

TOKENS, ROWS, FRAMES = 16_000, 512, 64_000
"""Target tokens an update at least; rows in tasks whose rows are not pieces of text; frames of recordings."""

SIZES = ("batch_tokens", "batch_frames", "batch_rows")
"""Settings of `data` that say how large a batch is; the first one that a recipe has decides."""

COUNTS_UPDATES = ("max_updates", "validate_every", "log_every", "freeze_updates", "monitors")


def gpu_overrides(recipe: Mapping[str, Any]) -> list[str]:
    """Overrides that make the updates of a recipe large enough for a GPU; [] if they are.

    The batches of an update become one. The changed recipe needs no further change.

    Example:
        >>> training = {"accumulate": 2, "max_updates": 800, "optimiser": {"use": "adamw", "lr": 0.001}}
        >>> gpu_overrides({"data": {"batch_tokens": 2000}, "training": training})[:3]
        ['training.accumulate=1', 'data.batch_tokens=16000', 'training.max_updates=200']
    """
    data, training = recipe["data"], recipe["training"]
    sizes = {key: data[key] for key in SIZES if data.get(key)}
    if not sizes:
        return []
    parts, (first, size) = training["accumulate"], next(iter(sizes.items()))
    length = data.get("length", 1) if first == "batch_rows" else 1
    least = ROWS if first == "batch_rows" and not data.get("length") else TOKENS
    least = FRAMES if first == "batch_frames" else least
    factor = max(1.0, math.ceil(least / length) / (parts * size))
    if parts == 1 and factor == 1:
        return []
    found = ["training.accumulate=1"]
    found += [f"data.{key}={round(value * parts * factor)}" for key, value in sizes.items()]
    if factor > 1:
        found += _counts(training, factor)
        found += [f"training.optimiser.lr={training['optimiser']['lr'] * math.sqrt(factor):.3g}"]
    return found


def _counts(training: Mapping[str, Any], factor: float) -> Iterator[str]:
    """Settings that count updates, for so many times fewer of them."""
    counts = {name: training.get(name) for name in COUNTS_UPDATES}
    feeding = training.get("feeding") or {}
    counts["schedule.warmup"] = (training.get("schedule") or {}).get("warmup")
    counts["feeding.updates"] = feeding.get("updates")
    for name, number in counts.items():
        if number and number is not True:
            yield f"training.{name}={max(1, round(number / factor))}"
    if feeding.get("use") == "exponential":
        yield f"training.feeding.k={feeding['k'] ** factor:.6g}"
    if feeding.get("use") == "inverse_sigmoid":
        yield f"training.feeding.k={max(1.0, feeding['k'] / factor):.6g}"
