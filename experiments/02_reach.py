"""Claim 2: gradients of the plain network vanish below γ λ₁ = 1 and may explode above; LSTM and orthogonal reach further.

    python experiments/02_reach.py

First, random tanh networks, their W_hh scaled to a largest singular value λ₁: the measured ‖∂h_T/∂h_t‖₂ at lag 50.
Then the adding problem: three cells, the same updates, what they reach and what they learn.
Source: Pascanu, Mikolov & Bengio 2013; Arjovsky, Shah & Bengio 2016 for the problem.
"""

from functools import partial

import numpy as np
import torch
from torch import nn

from problems import sums
from study import Study, begin, interval, learn, picture, plant
from weft.diagnose.reach import reach
from weft.models import Predictor
from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.point import Point
from weft.nn.pools.summary import Summary

SIZE, LAG = 16, 50
FACTORS = (0.5, 0.8, 0.95, 1.1, 1.3, 1.6, 2.0, 3.0)
CELLS = {
    "Elman": Elman,
    "orthogonal": Orthogonal,
    "LSTM": partial(LSTM, forget_bias=1.0),
    "GRU": GRU,
}


def adder(cell: type[Cell]) -> Predictor:
    """Reads numbers and marks, says a sum."""
    encoder = RecurrentEncoder(2, sizes=(SIZE,), cell=cell)
    return Predictor(nn.Identity(), encoder, Point(SIZE), pool=Summary(SIZE))


def at_lag(model: Predictor, chance: np.random.Generator, rows: int = 4) -> np.ndarray:
    """The measured reach [LAG + 1] by lag, geometric mean of some sequences."""
    norms = reach(model, sums(chance, rows, LAG + 1))[0].norms
    return norms.clamp(min=1e-30).log().mean(0).exp().flip(0).numpy()


def scaled(factor: float) -> Predictor:
    """A plain network whose W_hh is a random matrix of this largest singular value."""
    model = adder(Elman)
    weight = model.encoder.stack.forwards[0].weight_h
    with torch.no_grad():
        weight.copy_(torch.randn_like(weight))
        weight.mul_(factor / torch.linalg.matrix_norm(weight, ord=2))
    return model


def random_networks(study: Study) -> np.ndarray:
    """[networks, factors] the reach at the lag."""
    networks = 2 if study.quick else 10
    found = np.zeros((networks, len(FACTORS)))
    for row in range(networks):
        for column, factor in enumerate(FACTORS):
            found[row, column] = at_lag(scaled(factor), plant(100 + row), 1)[-1]
    return found


def main() -> None:
    """Measure, train, judge, draw."""
    study = begin(
        2,
        "Gradients of the plain RNN vanish where γ λ₁ < 1 and may explode above; LSTM and orthogonal recurrence reach further.",
    )
    random = random_networks(study)
    for column, factor in enumerate(FACTORS):
        study.numbers[
            f"reach at lag {LAG}, λ₁ = {factor}: lowest, median, highest of {len(random)} networks"
        ] = [float(f"{value:.3g}") for value in np.quantile(random[:, column], (0, 0.5, 1))]
    updates, length = (2, 60) if study.quick else (300, 30)
    errors: dict[str, list[float]] = {name: [] for name in CELLS}
    curves: dict[str, list[np.ndarray]] = {name: [] for name in CELLS}
    for seed in study.seeds:
        for name, cell in CELLS.items():
            chance = plant(seed)
            model = adder(cell)
            learn(model, lambda chance=chance: sums(chance, 32, length), updates, rate=5e-3)
            with torch.no_grad():
                errors[name].append(float(model.loss(sums(chance, 500, length)).mean))
            curves[name].append(at_lag(model, chance))
    reached = {
        name: study.measured(
            f"reach at lag {LAG} after training, {name}", [float(c[-1]) for c in curves[name]]
        )
        for name in CELLS
    }
    lost = {
        name: study.measured(f"squared error of the sum at length {length}, {name}", errors[name])
        for name in CELLS
    }
    below, above = random[:, :3], random[:, 3:]
    study.expect(
        f"every random network with λ₁ < 1 (γ = 1) has a reach below λ₁^{LAG}",
        bool(np.all(below <= np.array(FACTORS[:3]) ** LAG)),
    )
    study.expect("of those above 1, some explode (reach above 1)", bool((above > 1).any()))
    study.expect(
        "and some vanish all the same (below 0.01): above 1 is not sufficient", bool((above < 0.01).any())
    )
    study.expect(
        "the orthogonal network reaches further than the plain one after training",
        reached["orthogonal"] > reached["Elman"],
    )
    study.expect(
        "the LSTM reaches further than the plain one after training", reached["LSTM"] > reached["Elman"]
    )
    study.expect(
        "a gated or orthogonal cell has half the plain one's error or less",
        min(lost["LSTM"], lost["orthogonal"], lost["GRU"]) < 0.5 * lost["Elman"],
    )
    figure, (left, right) = picture(2)
    left.boxplot(
        [np.log10(random[:, column]) for column in range(len(FACTORS))], tick_labels=[str(f) for f in FACTORS]
    )
    left.axhline(0, color="black", linewidth=0.8, linestyle=":")
    left.set(xlabel="λ₁ of W_hh", ylabel=f"log₁₀ of the reach at lag {LAG}")
    for name in CELLS:
        right.semilogy(
            np.exp(np.mean(np.log(curves[name]), 0)), label=f"{name}, error {interval(errors[name])[0]:.3f}"
        )
    right.set(xlabel="lag T - t", ylabel="‖∂h_T/∂h_t‖ after training")
    right.legend(fontsize=8)
    study.finish(figure, f"The adding problem has length {length}; answering 1 always has an error of 0.167.")


if __name__ == "__main__":
    main()
