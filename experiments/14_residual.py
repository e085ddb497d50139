"""Claim 14: Residual connections let gradients through deep stacks, so that these learn.

    python experiments/14_residual.py

Tested: Stacks of 16 Elman or LSTM layers with 24 units: the norm of the gradient at the first layer over that at the
last, before training; then the accuracy of 12 layers after 80 updates (name the first of eight letters after the last).

Picture: Left, the gradient at the first layer over that at the last, by depth. Right, the accuracy of 12 layers.

Limits: One sequence length of 8, one learning rate. Recurrent matrices start orthogonal, as always in Weft. The first
version of this experiment had Elman stacks only and found no help; the LSTM was added after that.

Source: He et al. 2016; Wu et al. 2016, section 3.1, for recurrent stacks (of LSTM cells).
"""

from typing import Any

import numpy as np
import torch

from problems import Labels
from study import Part, begin, curves, learn, level, picture, plant, points
from weft.models import Labeller
from weft.nn import Categorical, RecurrentEncoder, Summary, Tokens
from weft.nn.cells import LSTM, Elman

LETTERS, WIDTH, STEPS = 6, 24, 8
DEPTHS = (2, 4, 8, 16)
CELLS = {"Elman": Elman, "LSTM": LSTM}
KINDS = {f"{way} {cell}": (cell, way == "residual") for cell in CELLS for way in ("plain", "residual")}
PARTS = {
    f"{cell} {what}": Part(says.format(cell), unit)
    for cell in CELLS
    for what, says, unit in (
        (
            "gradient",
            "{}, 16 layers: more of the gradient arrives with residual connections.",
            "log₁₀ of the ratio",
        ),
        ("accuracy", "{}, 12 layers: more accurate with residual connections.", "accuracy"),
    )
}


def stack(cell: str, residual: bool, depth: int) -> Labeller:
    """A classifier above a deep recurrent network."""
    encoder = RecurrentEncoder(WIDTH, sizes=(WIDTH,) * depth, cell=CELLS[cell], residual=residual)
    return Labeller(Tokens(LETTERS, WIDTH), encoder, Categorical(WIDTH, LETTERS), pool=Summary(WIDTH))


def first_letter(chance: np.random.Generator, rows: int) -> Labels:
    """Random letters, and the first of them."""
    source = torch.from_numpy(chance.integers(0, LETTERS, (rows, STEPS)))
    return Labels(source, torch.ones(rows, STEPS, dtype=torch.bool), source[:, 0])


def arriving(model: Labeller, batch: Labels) -> float:
    """log₁₀ of the norm of the first layer's gradient over that of the last one's."""
    model.loss(batch).mean.backward()
    layers = model.encoder.stack.forwards
    first, last = (
        torch.stack([p.grad.square().sum() for p in layer.parameters()]).sum()
        for layer in (layers[0], layers[-1])
    )
    return 0.5 * float(torch.log10(first / last))


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Gradients by depth, and accuracy, for each kind of stack."""
    found = {}
    for name, kind in KINDS.items():
        batch = first_letter(plant(seed), 64)
        found[f"{name}, gradient"] = [arriving(stack(*kind, depth), batch) for depth in DEPTHS]
        chance = plant(seed)
        model = stack(*kind, 12)
        learn(model, lambda: first_letter(chance, 32), 3 if quick else 80, rate=1e-3)
        test = first_letter(chance, 500)
        with torch.no_grad():
            found[name] = float((model.best(*test[:2])[:, 0] == test.target).double().mean())
    return found


def main() -> None:
    """Measure, train, judge, draw."""
    study = begin(__doc__, PARTS)
    found = study.repeat(once)
    for cell in CELLS:
        residual, plain = (found[f"{way} {cell}, gradient"][:, -1] for way in ("residual", "plain"))
        study.compare(f"{cell} gradient", residual, plain)
        study.compare(f"{cell} accuracy", found[f"residual {cell}"], found[f"plain {cell}"])
    figure, (left, right) = picture(2)
    curves(left, DEPTHS, {name: found[f"{name}, gradient"] for name in KINDS})
    left.set_xscale("log", base=2)
    left.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
    left.set(xlabel="layers", ylabel="log₁₀ of the gradient, first / last layer")
    points(right, {name.replace(" ", "\n"): found[name] for name in KINDS})
    right.set(ylabel="accuracy of 12 layers", ylim=(0, 1.04))
    level(right, 1 / LETTERS, "chance")
    study.finish(figure)


if __name__ == "__main__":
    main()
