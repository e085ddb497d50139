"""Claim 14: Residual connections let gradients through deep stacks, so that these learn.

    python experiments/14_residual.py

Tested: Stacks of 16 Elman or LSTM layers with 24 units: the norm of the gradient at the first layer over that at the
last, before training; then their accuracy after 300 updates (name the first of eight letters after the last), each kind
of stack at the best of four learning rates. All recurrent matrices start from N(0, 1/n).

Picture: Left, the gradient at the first layer over that at the last, by depth. Right, the accuracy of 16 layers.

Tries: The first design had Elman stacks only and found no help. The second (seeds 11 to 16) started the recurrent
matrices orthogonal, which is a remedy itself, had one learning rate and 80 updates, and called the claim contradicted
because plain Elman layers learnt more.

Limits: One sequence length of 8. The learning rate chosen for Elman with residual connections is the highest that was
tried.

Source: He et al. 2016; Wu et al. 2016, section 3.1, for recurrent stacks (of LSTM cells).
"""

from typing import Any

import numpy as np
import torch

from problems import Labels, started_plain
from study import Part, begin, curves, learn, level, picture, plant, points
from weft.models import Labeller
from weft.nn import Categorical, RecurrentEncoder, Summary, Tokens
from weft.nn.cells import LSTM, Elman

LETTERS, WIDTH, STEPS = 6, 24, 8
DEPTHS, RATES = (2, 4, 8, 16), (5e-4, 1e-3, 2.5e-3, 5e-3)
TRAINED = "stacks after long training"
CELLS = {"Elman": Elman, "LSTM": LSTM}
KINDS = {f"{way} {cell}": (cell, way == "residual") for cell in CELLS for way in ("plain", "residual")}
PARTS = {
    f"{cell} {what}": Part(says.format(cell), unit, beyond=beyond)
    for cell in CELLS
    for what, says, unit, beyond in (
        (
            "gradient",
            "{}, 16 layers: more of the gradient arrives with residual connections.",
            "log₁₀ of the ratio",
            "",
        ),
        ("accuracy", "{}, 16 layers: more accurate with residual connections.", "accuracy", TRAINED),
    )
}


def stack(cell: str, residual: bool, depth: int) -> Labeller:
    """A classifier above a deep recurrent network."""
    encoder = RecurrentEncoder(WIDTH, sizes=(WIDTH,) * depth, cell=CELLS[cell], residual=residual)
    return Labeller(
        Tokens(LETTERS, WIDTH), started_plain(encoder), Categorical(WIDTH, LETTERS), pool=Summary(WIDTH)
    )


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


def accuracy(name: str, rate: float, seed: int, updates: int) -> float:
    """Of the deepest stack, after training."""
    chance = plant(seed)
    model = learn(stack(*KINDS[name], DEPTHS[-1]), lambda: first_letter(chance, 32), updates, rate=rate)
    test = first_letter(chance, 500)
    with torch.no_grad():
        return float((model.best(*test[:2])[:, 0] == test.target).double().mean())


def main() -> None:
    """Choose rates, measure, train, judge, draw."""
    study = begin(__doc__, PARTS, first=201, tries=3)
    updates = 3 if study.quick else 300
    rates = study.best_rates(
        "letters", KINDS, RATES, lambda name, rate, seed: 1 - accuracy(name, rate, seed, updates)
    )

    def once(seed: int, quick: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, kind in KINDS.items():
            batch = first_letter(plant(seed), 64)
            found[f"{name}, gradient"] = [arriving(stack(*kind, depth), batch) for depth in DEPTHS]
            found[name] = accuracy(name, rates[name], seed, updates)
        return found

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
    right.set(ylabel="accuracy of 16 layers", ylim=(0, 1.04))
    level(right, 1 / LETTERS, "chance")
    study.finish(figure)


if __name__ == "__main__":
    main()
