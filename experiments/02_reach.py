"""Claim 2: Gradients of the plain RNN vanish where γ λ₁ < 1 and may explode above; LSTM and orthogonal RNN reach further and learn more.

    python experiments/02_reach.py

Tested: The gradient's reach ‖∂h_T/∂h_t‖₂ at lag 50. λ₁ is the largest singular value of W_hh, γ = 1 for tanh. Random
tanh networks for the two theorems; then Elman, orthogonal and LSTM cells of 16 units after the same 600 updates on
the adding problem of length 30, each at the best of five learning rates, compared in reach and in squared error. The
plain network is Elman's with W_hh drawn from N(0, 1/n), and so is the LSTM's.

Picture: Left, reach at lag 50 over λ₁ of random networks, below the bound everywhere. Right, reach over the lag after
training for three cells.

Tries: In the first design (seeds 11 to 18) the plain network started with an orthogonal W_hh, which is a remedy itself,
and all had one learning rate. The LSTM was better; for the orthogonal network it was undecided.

Limits: One problem, which is short. The learning rate chosen for the plain network is the lowest that was tried.

Source: Pascanu, Mikolov & Bengio 2013; Arjovsky, Shah & Bengio 2016 for the problem.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from problems import Labels, started_plain, sums
from study import Part, begin, curves, learn, level, picture, plant
from weft.diagnose.reach import reach
from weft.models import Labeller
from weft.nn import Point, RecurrentEncoder, Summary
from weft.nn.cells import LSTM, Cell, Elman, Orthogonal

SIZE, LAG, LENGTH = 16, 50, 30
FACTORS = (0.5, 0.8, 0.95, 1.1, 1.3, 1.6, 2.0, 3.0)
CELLS = {"plain": Elman, "orthogonal": Orthogonal, "LSTM": LSTM}
RATES = (2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2)
PARTS = {
    "bound": Part("The reach of a tanh network is at most λ₁ to the power of the lag.", theorem=True),
    "explode": Part(
        "Some network with λ₁ > 1 explodes: with W_hh = λ₁ Q, Q orthogonal, and no input, the reach is λ₁^lag.",
        theorem=True,
    ),
    "orthogonal reach": Part(
        "The orthogonal network reaches further than the plain one.", "log₁₀ of the reach"
    ),
    "LSTM reach": Part("The LSTM reaches further than the plain network.", "log₁₀ of the reach"),
    "orthogonal error": Part(
        "The plain network has a higher error than the orthogonal one.", "squared error"
    ),
    "LSTM error": Part("The plain network has a higher error than the LSTM.", "squared error"),
}


def adder(cell: type[Cell]) -> Labeller:
    """Reads numbers and marks, gives a sum."""
    encoder = RecurrentEncoder(2, sizes=(SIZE,), cell=cell)
    if cell is not Orthogonal:
        started_plain(encoder)
    return Labeller(nn.Identity(), encoder, Point(SIZE), pool=Summary(SIZE))


def reached(model: Labeller, batch: Labels) -> np.ndarray:
    """log₁₀ of the reach at the lags 0 .. LAG, mean of some sequences."""
    norms = reach(model, batch)[0].norms
    return norms.clamp(min=1e-37).log10().mean(0).flip(0).numpy()


def scaled(factor: float, weight: torch.Tensor) -> Labeller:
    """A plain network whose W_hh is this matrix, scaled to this largest singular value."""
    model = adder(Elman)
    with torch.no_grad():
        model.encoder.stack.forwards[0].weight_h.copy_(
            factor / torch.linalg.matrix_norm(weight, ord=2) * weight
        )
    return model


def trained(name: str, rate: float, seed: int, updates: int) -> tuple[Labeller, np.random.Generator]:
    """A network that has learnt to add, and the generator for further data."""
    chance = plant(seed)
    return learn(adder(CELLS[name]), lambda: sums(chance, 32, LENGTH), updates, rate=rate), chance


@torch.no_grad()
def error(model: Labeller, chance: np.random.Generator) -> float:
    """Squared error on new sequences."""
    return float(model.loss(sums(chance, 500, LENGTH)).mean)


def random_networks(seed: int) -> dict[str, Any]:
    """The reach of random networks at the lag, and the two theorems' errors."""
    chance = plant(seed)
    batch, found = sums(chance, 1, LAG + 1), {"random": [], "above bound": [], "not λ₁^lag": []}
    silent = batch._replace(source=torch.zeros_like(batch.source))
    for factor in FACTORS:
        bound = np.arange(LAG + 1) * np.log10(factor)
        course = reached(scaled(factor, torch.randn(SIZE, SIZE)), batch)
        found["random"].append(course[-1])
        found["above bound"].append((course - bound).max())
        exact = reached(scaled(factor, nn.init.orthogonal_(torch.empty(SIZE, SIZE))), silent)
        found["not λ₁^lag"].append(abs(exact - bound).max())
    return found


def main() -> None:
    """Choose rates, measure, train, judge, draw."""
    study = begin(__doc__, PARTS, seeds=12, first=201, tries=2)
    updates = 2 if study.quick else 600
    rates = study.best_rates(
        "adding", CELLS, RATES, lambda name, rate, seed: error(*trained(name, rate, seed, updates))
    )

    def once(seed: int, quick: bool) -> dict[str, Any]:
        found = random_networks(seed)
        for name in CELLS:
            model, chance = trained(name, rates[name], seed, updates)
            found[f"{name} error"] = error(model, chance)
            found[name] = reached(model, sums(chance, 4, LAG + 1))
        return found

    found = study.repeat(once)
    study.check("bound", found["above bound"].max(), 1e-4)
    study.check("explode", found["not λ₁^lag"].max(), 1e-4)
    for name in ("orthogonal", "LSTM"):
        study.compare(f"{name} reach", found[name][:, -1], found["plain"][:, -1])
    for name in ("orthogonal", "LSTM"):
        study.compare(f"{name} error", found["plain error"], found[f"{name} error"])
    study.measured(f"log₁₀ of the reach of random networks with λ₁ = {FACTORS[-1]}", found["random"][:, -1])
    study.measured(f"the same with λ₁ = {FACTORS[3]}", found["random"][:, 3])
    figure, (left, right) = picture(2)
    curves(left, FACTORS, {"random networks": found["random"]})
    left.plot(FACTORS, LAG * np.log10(FACTORS), label=f"bound λ₁^{LAG}")
    left.set(xlabel="λ₁ of W_hh", ylabel=f"log₁₀ of the reach at lag {LAG}")
    level(left, 0, "neither shrinks nor grows")
    curves(right, range(LAG + 1), {name: found[name] for name in CELLS}, every=10)
    right.set(xlabel="lag T - t (steps)", ylabel="log₁₀ of ‖∂h_T/∂h_t‖ after training")
    study.finish(figure)


if __name__ == "__main__":
    main()
