"""Claim 6: Unscaled dot products have variance d, and their softmax hardens as d grows; scaling keeps it soft.

    python experiments/06_scale.py

Tested: The variance exactly, over all vectors of ±1. Then the attention weights of 1,000 queries over 20 keys with
entries from N(0, 1), for d from 4 to 1,024. The slope of the softmax is the largest w (1 - w) of a query.

Picture: The largest of 20 weights, and the steepest slope of the softmax, over d, unscaled and scaled.

Limits: Random vectors: trained queries and keys are not independent.

Source: Vaswani et al. 2017, section 3.2.1, footnote 4.
"""

from itertools import product
from typing import Any

import torch

from study import Part, begin, curves, picture
from weft.nn.scores import Dot, ScaledScore

WIDTHS = (4, 16, 64, 256, 1024)
KINDS = {"dot product": Dot, "scaled": ScaledScore}
PARTS = {
    "variance": Part(
        "Independent entries of mean 0 and variance 1 give dot products of variance d, scaled ones of variance 1.",
        theorem=True,
    ),
    "hardens": Part("Unscaled, the largest weight is larger at d = 1,024 than at d = 4.", "weight"),
    "soft": Part("From d = 4 to 1,024 the largest weight grows more unscaled than scaled.", "weight"),
    "slope": Part("At d = 1,024 the softmax is steeper scaled than unscaled.", "slope"),
}


def exact(width: int) -> float:
    """How far the variances over all keys of ±1 are from d and from 1."""
    keys = torch.tensor(list(product((-1.0, 1.0), repeat=width)), dtype=torch.float64)[None]
    query = keys[:, -1:]
    wanted = {"dot product": float(width), "scaled": 1.0}
    return max(
        abs(float(kind(width, width).double()(query, keys).var(correction=0)) - wanted[name])
        for name, kind in KINDS.items()
    )


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Largest weights and slopes, by width."""
    found: dict[str, list[float]] = {f"{what}, {name}": [] for what in ("weight", "slope") for name in KINDS}
    for width in WIDTHS:
        rows = 50 if quick else 1000
        query, keys = torch.randn(rows, 1, width), torch.randn(rows, 20, width)
        for name, kind in KINDS.items():
            weights = kind(width, width)(query, keys)[:, 0].softmax(-1)  # [B, S]
            found[f"weight, {name}"].append(float(weights.amax(-1).mean()))
            found[f"slope, {name}"].append(float((weights * (1 - weights)).amax(-1).mean()))
    return found


def main() -> None:
    """Measure, judge, draw."""
    study = begin(__doc__, PARTS)
    study.check("variance", max(exact(width) for width in range(1, 13)), 1e-9)
    found = study.repeat(once)
    hard, soft = found["weight, dot product"], found["weight, scaled"]
    study.compare("hardens", hard[:, -1], hard[:, 0])
    study.compare("soft", hard[:, -1] - hard[:, 0], soft[:, -1] - soft[:, 0])
    study.compare("slope", found["slope, scaled"][:, -1], found["slope, dot product"][:, -1])
    figure, both = picture(2)
    for axes, what in zip(both, ("weight", "slope"), strict=True):
        curves(axes, WIDTHS, {name: found[f"{what}, {name}"] for name in KINDS})
        axes.set_xscale("log", base=2)
        axes.set_xticks(WIDTHS, [f"{width:,}" for width in WIDTHS])
        axes.set(xlabel="d", ylim=(0, None))
    both[0].set(ylabel="largest of 20 weights")
    both[1].set(ylabel="steepest slope of the softmax")
    study.finish(figure)


if __name__ == "__main__":
    main()
