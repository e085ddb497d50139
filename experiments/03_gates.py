"""Claim 3: Coupled gates save 25 % of the parameters, are worse than the LSTM and cannot accumulate; the GRU is about equal; peepholes help.

    python experiments/03_gates.py

Tested: Counting the ones of a sequence, read linearly from the cell state c: h = o · tanh(c) would hide a large c.
Trained at lengths up to 20, tested at 60 (12 units, 1,000 updates). Then a language model of English letters for each
cell with 48 units and 300 updates. "About equal" means that the interval of the difference lies within 0.05 nats, 5 % of perplexity.

Picture: Left, the largest |c| of LSTM and coupled gates while they count to 60. Right, nats a letter of four cells.

Limits: Small cells of equal width, hence unequal numbers of parameters, trained briefly. "Help" was tested on text
only; peepholes were made for precise timing.

Source: Greff et al. 2017 (coupled, peepholes); Weiss, Goldberg & Yahav 2018 (counting).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from problems import Labels, counts, english_letters, nats, writer
from study import Part, begin, learn, level, picture, plant, points
from weft.nn import Loss, Point, RecurrentDecoder
from weft.nn.cells import GRU, LSTM, Cell, Coupled, Peephole

CELLS = {"LSTM": LSTM, "peephole": Peephole, "coupled": Coupled, "GRU": GRU}
SIZE, WIDTH, SAME = 12, 48, 0.05
PARTS = {
    "parameters": Part("A coupled cell has exactly 3/4 of the LSTM's parameters.", theorem=True),
    "bounded": Part("With coupled gates |c| never exceeds 1: c is a mean of c and tanh.", theorem=True),
    "c": Part("Counting to 60, the LSTM's largest |c| is above that of coupled gates.", "|c|"),
    "counting": Part("At length 60, coupled gates miscount by more than the LSTM.", "ones"),
    "text": Part("On text, coupled gates lose more nats a letter than the LSTM.", "nats"),
    "GRU no worse": Part("On text, the LSTM is at most 0.05 nats below the GRU.", "nats", least=-SAME),
    "GRU no better": Part("On text, the GRU is at most 0.05 nats below the LSTM.", "nats", least=-SAME),
    "peephole": Part("On text, the LSTM loses more nats a letter than with peepholes.", "nats"),
}
LETTERS = english_letters()


class Counter(nn.Module):
    """Reads c, the state that a gated cell adds to, by a linear layer."""

    def __init__(self, cell: type[Cell]) -> None:
        super().__init__()
        self.cell, self.head = cell(1, SIZE), Point(SIZE)

    def memory(self, x: Tensor) -> Tensor:
        """[B, T, 1] to c after each step, [B, T, H]."""
        state, seen = self.cell.start(x), []
        for t in range(x.shape[1]):
            state = self.cell.step(x[:, t], state)[1]
            seen.append(state[1])
        return torch.stack(seen, 1)

    def loss(self, batch: Labels) -> Loss:
        """Squared error of the count so far, at every step."""
        return self.head.loss(self.memory(batch.source), batch.target, batch.source_mask)


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Errors of counting and largest |c|; losses on text."""
    found = {}
    for name in ("LSTM", "coupled"):
        chance = plant(seed)
        model = learn(Counter(CELLS[name]), lambda: counts(chance, 32, 20), 3 if quick else 1000, rate=1e-2)
        for length in (20, 60):
            test = counts(np.random.default_rng([seed, length]), 200, length)
            with torch.no_grad():
                memory = model.memory(test.source)
                error = model.head(memory)[:, -1] - test.target[:, -1]
            found[f"{name}, miscounted at {length}"] = 10 * float(error.abs().mean())
        found[f"{name}, |c|"] = float(memory.abs().max())
    for name, cell in CELLS.items():
        chance = plant(seed)
        model = writer(RecurrentDecoder(WIDTH, sizes=(WIDTH,), cell=cell), WIDTH, LETTERS.letters)
        learn(model, lambda: LETTERS.draw(chance, 16, 60), 2 if quick else 300, rate=5e-3)
        found[name] = nats(model, LETTERS.held_out(60, 8 if quick else 64))
    return found


def main() -> None:
    """Count, train, judge, draw."""
    study = begin(__doc__, PARTS, seeds=8)
    sizes = {name: sum(p.numel() for p in cell(WIDTH, WIDTH).parameters()) for name, cell in CELLS.items()}
    study.check("parameters", abs(sizes["coupled"] / sizes["LSTM"] - 0.75), 0)
    found = study.repeat(once)
    study.check("bounded", max(0.0, found["coupled, |c|"].max() - 1), 1e-6)
    study.compare("c", found["LSTM, |c|"], found["coupled, |c|"])
    study.compare("counting", found["coupled, miscounted at 60"], found["LSTM, miscounted at 60"])
    study.compare("text", found["coupled"], found["LSTM"])
    study.compare("GRU no worse", found["LSTM"], found["GRU"])
    study.compare("GRU no better", found["GRU"], found["LSTM"])
    study.compare("peephole", found["LSTM"], found["peephole"])
    for name in ("LSTM", "coupled"):
        study.measured(f"miscounted ones at length 20, {name}", found[f"{name}, miscounted at 20"])
    figure, (left, right) = picture(2)
    points(left, {name: found[f"{name}, |c|"] for name in ("LSTM", "coupled")})
    left.set(ylabel="largest |c| while counting to length 60", ylim=(0, None))
    level(left, 1, "bound of coupled gates")
    points(right, {name: found[name] for name in CELLS})
    right.set(ylabel="nats a letter, held-out text")
    study.finish(figure)


if __name__ == "__main__":
    main()
