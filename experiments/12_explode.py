"""Claim 12: An LSTM's gradient can explode through h, but rarely does.

    python experiments/12_explode.py

Tested: Products of Jacobians of an LSTM of 12 units over 50 steps: along c alone, with h held fixed, and of the whole
state, the largest of the four blocks. Above 1 a gradient grows. "Can" is tested with recurrent weights eight times as
large as at the start of a training, N(0, 1/n); "rarely" at the start and at eleven looks during 250 updates on the
adding problem.

Picture: Left, the whole product over the scale of the recurrent weights. Right, the whole product during training.

Tries: In the first design (seeds 11 to 20) the trained networks started with orthogonal recurrent matrices, which keep
products near 1; all parts held.

Limits: One problem, one size; long trainings with high learning rates were not tried.

Source: Hochreiter & Schmidhuber 1997; Pascanu, Mikolov & Bengio 2013.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from problems import started_plain, sums
from study import Part, begin, curves, learn, level, picture, plant
from weft.diagnose.reach import paths
from weft.diagnose.recorded import trace, watch
from weft.models import Labeller
from weft.nn import Point, RecurrentEncoder, Summary
from weft.nn.cells import LSTM

SIZE, LAG, EVERY = 12, 50, 25
SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Standard deviation of a recurrent weight, times the square root of H; training starts at 1."""

LOG = "log₁₀ of the product"
PARTS = {
    "direct": Part(
        "Along c alone a gradient never grows: a product of forget gates is at most 1.", theorem=True
    ),
    "can": Part("With recurrent weights of scale 8 the whole product is above 1.", LOG),
    "start": Part("With recurrent weights of scale 1, as training starts, it is below 1.", LOG),
    "training": Part("During a training, the largest whole product met is on average below 1.", LOG),
}


def adder() -> Labeller:
    """An LSTM that reads numbers and marks."""
    encoder = RecurrentEncoder(2, sizes=(SIZE,), cell=LSTM)
    return Labeller(nn.Identity(), started_plain(encoder), Point(SIZE), pool=Summary(SIZE))


def both_ways(model: Labeller, seed: int) -> tuple[float, float]:
    """(largest product along c, log₁₀ of the whole product) at the lag; mean of 2 sequences."""
    with torch.no_grad(), watch(model) as runs:
        model.loss(sums(np.random.default_rng(seed), 2, LAG + 1))
    found = paths(trace(runs[0]))
    whole = torch.stack([found.hh, found.hc, found.ch, found.cc]).amax(0)[:, 0]
    return float(found.direct[:, 0].max()), float(whole.clamp(min=1e-37).log10().mean())


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Both products for each scale, and during a training."""
    seen = []
    for scale in SCALES:
        model = adder()
        nn.init.normal_(model.encoder.stack.forwards[0].weight_h, std=scale * SIZE**-0.5)
        seen.append(both_ways(model, seed))
    scales = len(seen)
    chance = plant(seed)
    model = adder()

    def look(update: int) -> None:
        if update % EVERY == 0:
            seen.append(both_ways(model, seed))

    updates = EVERY if quick else 10 * EVERY
    learn(model, lambda: sums(chance, 32, 30), updates, rate=5e-3, watch=look)
    look(updates)
    direct, whole = np.array(seen).T
    return {"direct": direct.max(), "scales": whole[:scales], "training": whole[scales:]}


def main() -> None:
    """Measure, train, judge, draw."""
    study = begin(__doc__, PARTS, seeds=10, first=201, tries=2)
    found = study.repeat(once)
    study.check("direct", max(0.0, found["direct"].max() - 1), 1e-6)
    study.compare("can", found["scales"][:, -1], 0.0)
    study.compare("start", 0.0, found["scales"][:, 1])
    study.compare("training", 0.0, found["training"].max(1))
    study.measured("looks during training with a product above 1 (%)", 100 * (found["training"] > 0).mean(1))
    figure, (left, right) = picture(2)
    curves(left, SCALES, {"LSTM before training": found["scales"]})
    left.set_xscale("log", base=2)
    left.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
    left.set(xlabel="scale of the recurrent weights", ylabel=f"log₁₀ of the product at lag {LAG}")
    looks = EVERY * np.arange(found["training"].shape[1])
    curves(right, looks, {"LSTM in training": found["training"]})
    right.set(xlabel="updates", ylabel=f"log₁₀ of the product at lag {LAG}")
    for axes in (left, right):
        level(axes, 0, "neither shrinks nor grows")
    study.finish(figure)


if __name__ == "__main__":
    main()
