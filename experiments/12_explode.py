"""Claim 12: an LSTM's gradient can explode through h, but rarely does.

    python experiments/12_explode.py

Both ways back: along c alone (the product of the forget gates, never above 1) and the whole product of the 2H x 2H
Jacobians, at lag 50. First with weights drawn ever larger, then at every 25th update of a training.
Source: Hochreiter & Schmidhuber 1997; Pascanu, Mikolov & Bengio 2013.
"""

import numpy as np
import torch
from torch import nn

from problems import sums
from study import begin, learn, picture, plant
from weft.diagnose.paths import paths
from weft.diagnose.recorded import trace, watch
from weft.models import Predictor
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.point import Point
from weft.nn.pools.summary import Summary

SIZE, LAG, MUCH = 12, 50, 100.0
SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Standard deviation of a recurrent weight, times the square root of H; training starts near 1."""


def adder() -> Predictor:
    """An LSTM that reads numbers and marks."""
    encoder = RecurrentEncoder(2, sizes=(SIZE,), cell=LSTM)
    return Predictor(nn.Identity(), encoder, Point(SIZE), pool=Summary(SIZE))


def both_ways(model: Predictor, chance: np.random.Generator) -> tuple[float, float]:
    """(the direct path's norm, the largest of the blocks hh, hc, ch, cc) at the lag; geometric mean of 2 rows."""
    with torch.no_grad(), watch(model) as runs:
        model.loss(sums(chance, 2, LAG + 1))
    found = paths(trace(runs[0]))
    whole = torch.stack([found.hh, found.hc, found.ch, found.cc]).amax(0)[:, 0]
    return float(found.direct[:, 0].clamp(min=1e-30).log().mean().exp()), float(
        whole.clamp(min=1e-30).log().mean().exp()
    )


def drawn(scale: float) -> Predictor:
    """An LSTM whose recurrent weights have this scale."""
    model = adder()
    with torch.no_grad():
        model.encoder.stack.forwards[0].weight_h.normal_(std=scale * SIZE**-0.5)
    return model


def main() -> None:
    """Measure, train, judge, draw."""
    study = begin(12, "An LSTM's gradient can explode through h, but rarely does.")
    networks = 2 if study.quick else 10
    direct, whole = np.zeros((networks, len(SCALES))), np.zeros((networks, len(SCALES)))
    for row in range(networks):
        for column, scale in enumerate(SCALES):
            chance = plant(200 + row)
            direct[row, column], whole[row, column] = both_ways(drawn(scale), chance)
    for column, scale in enumerate(SCALES):
        study.numbers[
            f"whole product at lag {LAG}, weights of scale {scale}: lowest, median, highest of {networks}"
        ] = [float(f"{value:.3g}") for value in np.quantile(whole[:, column], (0, 0.5, 1))]
        study.measured(
            f"share of networks above {MUCH:.0f}, scale {scale}", [float((whole[:, column] > MUCH).mean())]
        )
    updates, seen = (10 if study.quick else 250), []
    for seed in study.seeds:
        chance = plant(seed)
        model = adder()
        course: list[float] = []

        def look(
            update: int, model: Predictor = model, course: list[float] = course, seed: int = seed
        ) -> None:
            if update % 25 == 0:
                course.append(both_ways(model, np.random.default_rng(seed))[1])

        learn(model, lambda chance=chance: sums(chance, 32, 30), updates, rate=5e-3, watch=look)
        seen.append(course)
    trained = np.array(seen)
    study.measured(
        f"share of looks during training above {MUCH:.0f}", [float((row > MUCH).mean()) for row in trained]
    )
    study.measured("largest product met during training", [float(row.max()) for row in trained])
    study.expect(
        "the path along c alone never grows: its product is 1 or less in every network",
        bool((direct <= 1 + 1e-6).all()),
    )
    study.expect(
        f"the whole product can explode: above {MUCH:.0f} in some network", bool((whole > MUCH).any())
    )
    study.expect(
        "with weights as training starts from (scale 1) it never does", bool((whole[:, 1] <= MUCH).all())
    )
    study.expect("during training it is so in less than 5 % of looks", float((trained > MUCH).mean()) < 0.05)
    figure, (left, right) = picture(2)
    left.boxplot(
        [np.log10(whole[:, column]) for column in range(len(SCALES))], tick_labels=[str(s) for s in SCALES]
    )
    left.axhline(2, color="black", linewidth=0.8, linestyle=":")
    left.set(xlabel="scale of the recurrent weights", ylabel=f"log₁₀ of the product at lag {LAG}")
    for seed, row in zip(study.seeds, trained, strict=True):
        right.semilogy(25 * np.arange(len(row)), row, label=f"seed {seed}")
    right.axhline(MUCH, color="black", linewidth=0.8, linestyle=":")
    right.set(xlabel="update", ylabel=f"product at lag {LAG}")
    right.legend(fontsize=8)
    study.finish(figure, "The dotted lines are at 100, above which Weft's verdict says `explodes`.")


if __name__ == "__main__":
    main()
