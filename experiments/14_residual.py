"""Claim 14: residual connections let gradients through deep stacks.

    python experiments/14_residual.py

Elman and LSTM stacks of 2 to 16 layers: the gradient's norm at the first layer over that at the last, before training;
and what 12 layers learn in 80 updates (the first of eight letters, told after the last). Recurrent matrices start
orthogonal, as Weft's do.
Source: He et al. 2016; Wu et al. 2016, section 3.1, for recurrent stacks (of LSTM cells).
"""

import numpy as np
import torch

from problems import Labels
from study import bars, begin, learn, picture, plant
from weft.models import Predictor
from weft.nn.cells.elman import Elman
from weft.nn.cells.lstm import LSTM
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools.summary import Summary

LETTERS, WIDTH, STEPS = 6, 24, 8
DEPTHS = (2, 4, 8, 16)
CELLS = {"Elman": Elman, "LSTM": LSTM}
WAYS = {"plain": False, "residual": True}


def stack(cell: str, depth: int, residual: bool) -> Predictor:
    """A classifier above a deep recurrent network."""
    encoder = RecurrentEncoder(WIDTH, sizes=(WIDTH,) * depth, cell=CELLS[cell], residual=residual)
    return Predictor(Tokens(LETTERS, WIDTH), encoder, Categorical(WIDTH, LETTERS), pool=Summary(WIDTH))


def first_letter(chance: np.random.Generator, rows: int) -> Labels:
    """Random letters, and the first of them."""
    source = torch.from_numpy(chance.integers(0, LETTERS, (rows, STEPS)))
    return Labels(source, torch.ones(rows, STEPS, dtype=torch.bool), source[:, 0])


def share(model: Predictor, batch: Labels) -> float:
    """The norm of the first layer's gradient over that of the last one's."""
    model.zero_grad()
    model.loss(batch).mean.backward()
    layers = model.encoder.stack.forwards
    norms = [
        sum(float(p.grad.square().sum()) for p in layer.parameters()) ** 0.5
        for layer in (layers[0], layers[-1])
    ]
    return norms[0] / norms[1]


def main() -> None:
    """Measure, train, judge, draw."""
    study = begin(14, "Residual connections let gradients through deep stacks.")
    kinds = [(cell, way) for cell in CELLS for way in WAYS]
    shares = {kind: np.zeros((len(study.seeds), len(DEPTHS))) for kind in kinds}
    right: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    for at, seed in enumerate(study.seeds):
        for cell, way in kinds:
            for column, depth in enumerate(DEPTHS):
                chance = plant(seed)
                shares[cell, way][at, column] = share(stack(cell, depth, WAYS[way]), first_letter(chance, 64))
            chance = plant(seed)
            model = stack(cell, 12, WAYS[way])
            learn(model, lambda chance=chance: first_letter(chance, 32), 3 if study.quick else 80, rate=1e-3)
            test = first_letter(chance, 500)
            with torch.no_grad():
                right[cell, way].append(float((model.best(*test[:2])[:, 0] == test.target).double().mean()))
    for (cell, way), found in shares.items():
        for column, depth in enumerate(DEPTHS):
            study.measured(
                f"gradient at the first layer over the last, {way} {cell}, {depth} layers", found[:, column]
            )
    means = {
        kind: study.measured(f"accuracy of 12 layers after 80 updates, {kind[1]} {kind[0]}", right[kind])
        for kind in kinds
    }
    for cell in CELLS:
        plain, residual = shares[cell, "plain"].mean(0), shares[cell, "residual"].mean(0)
        study.expect(
            f"{cell}, plain: less of the gradient arrives at the first layer of 16 than of 4",
            plain[-1] < plain[1],
        )
        study.expect(
            f"{cell}: at 16 layers, ten times more arrives with residuals than without",
            residual[-1] > 10 * plain[-1],
        )
        study.expect(
            f"{cell}: 12 layers learn more with residuals in the same updates",
            means[cell, "residual"] > means[cell, "plain"] + 0.05,
        )
    figure, (left, axes) = picture(2)
    for cell, way in kinds:
        left.semilogy(DEPTHS, shares[cell, way].mean(0), marker="o", label=f"{way} {cell}")
    left.set(xlabel="layers", ylabel="gradient: first layer / last layer")
    left.legend(fontsize=8)
    bars(axes, [f"{way}\n{cell}" for cell, way in kinds], [right[kind] for kind in kinds])
    axes.axhline(1 / LETTERS, color="black", linewidth=0.8, linestyle=":")
    axes.set(ylabel="accuracy of 12 layers", ylim=(0, 1.02))
    study.finish(
        figure,
        "A first version of this script, Elman stacks of up to 24 layers alone, saw none of what it expected.",
    )


if __name__ == "__main__":
    main()
