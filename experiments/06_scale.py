"""Claim 6: unscaled dot products of random vectors have variance d, and their softmax hardens; scaling cures it.

    python experiments/06_scale.py

Queries and keys are drawn from N(0, 1). 20 keys compete for each query.
Source: Vaswani et al. 2017, section 3.2.1, footnote 4.
"""

import numpy as np
import torch

from study import begin, interval, picture, plant
from weft.nn.scores.dot import Dot
from weft.nn.scores.scaled import ScaledDot

KEYS = 20
WIDTHS = (4, 16, 64, 256, 1024)


def main() -> None:
    """Measure, judge, draw."""
    study = begin(
        6, "Unscaled dot products grow with d (variance d); scaling keeps the softmax soft.", seeds=5
    )
    rows = 50 if study.quick else 1000
    kinds = {"dot": Dot, "scaled dot": ScaledDot}
    variance = {name: np.zeros((len(study.seeds), len(WIDTHS))) for name in kinds}
    largest = {name: np.zeros((len(study.seeds), len(WIDTHS))) for name in kinds}
    slope = {name: np.zeros((len(study.seeds), len(WIDTHS))) for name in kinds}
    for at, seed in enumerate(study.seeds):
        plant(seed)
        for column, width in enumerate(WIDTHS):
            query, keys = torch.randn(rows, 1, width), torch.randn(rows, KEYS, width)
            for name, kind in kinds.items():
                energy = kind(width, width)(query, keys)[:, 0]  # [B, S]
                weights = energy.softmax(-1)
                variance[name][at, column] = float(energy.var())
                largest[name][at, column] = float(weights.amax(-1).mean())
                slope[name][at, column] = float((weights * (1 - weights)).amax(-1).mean())
    for name in kinds:
        for column, width in enumerate(WIDTHS):
            study.measured(f"variance, {name}, d = {width}", variance[name][:, column])
            study.measured(f"largest weight, {name}, d = {width}", largest[name][:, column])
            study.measured(f"steepest slope of the softmax, {name}, d = {width}", slope[name][:, column])
    power = np.polyfit(np.log(WIDTHS), np.log(variance["dot"].mean(0)), 1)[0]
    study.expect(
        f"the variance of dot products grows like d to the power 1 (within 0.05): {power:.3f}",
        abs(power - 1) < 0.05,
    )
    study.expect(
        "the variance of scaled ones is 1 (within 0.1) at every d",
        np.all(abs(variance["scaled dot"].mean(0) - 1) < 0.1),
    )
    study.expect(
        "unscaled, one of 20 keys gets more than 0.9 at d = 1024", largest["dot"][:, -1].mean() > 0.9
    )
    study.expect(
        "scaled, the largest weight moves by less than 0.05 from d = 16 on",
        np.ptp(largest["scaled dot"].mean(0)[1:]) < 0.05,
    )
    figure, (left, right) = picture(2)
    for name in kinds:
        left.loglog(WIDTHS, variance[name].mean(0), marker="o", label=name)
        found = [interval(list(column)) for column in largest[name].T]
        right.errorbar(
            WIDTHS, [mean for mean, _ in found], [half for _, half in found], marker="o", label=name
        )
    left.set(xlabel="d", ylabel="variance of the energies")
    right.set(xlabel="d", ylabel="largest of 20 weights", xscale="log", ylim=(0, 1))
    left.legend()
    study.finish(figure)


if __name__ == "__main__":
    main()
