"""Claim 3: coupled gates save 25 % of the parameters, are worse than the LSTM and cannot accumulate; GRU about equal.

    python experiments/03_gates.py

Counting: how many ones were there so far? Trained up to length 20, asked at 20 and at 60. Then English help texts
letter by letter, the same size and updates for every cell.
Source: Greff et al. 2017 (coupled, peepholes); Weiss, Goldberg & Yahav 2018 (counting).
"""

from functools import partial

import numpy as np
import torch
from torch import nn

from problems import counts, english_letters, nats, writer
from study import bars, begin, learn, picture, plant
from weft.models import Predictor
from weft.nn.cells.coupled import Coupled
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.peephole import Peephole
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.point import Point

CELLS = {"LSTM": partial(LSTM, forget_bias=1.0), "peephole": Peephole, "coupled": Coupled, "GRU": GRU}
SIZE, WIDTH = 12, 64


def main() -> None:
    """Count, train, judge, draw."""
    study = begin(
        3,
        "Coupled gates: 25 % fewer parameters, worse than the LSTM, cannot accumulate; GRU about equal to LSTM; peepholes may help.",
    )
    sizes = {name: sum(p.numel() for p in cell(WIDTH, WIDTH).parameters()) for name, cell in CELLS.items()}
    study.numbers["parameters of a cell of 64 units"] = sizes
    letters = english_letters()
    held = letters.held_out(60, 8 if study.quick else 64)
    wrong: dict[str, list[float]] = {name: [] for name in CELLS}
    long: dict[str, list[float]] = {name: [] for name in CELLS}
    text: dict[str, list[float]] = {name: [] for name in CELLS}
    for seed in study.seeds:
        for name, cell in CELLS.items():
            chance = plant(seed)
            encoder = RecurrentEncoder(1, sizes=(SIZE,), cell=cell)
            counter = Predictor(nn.Identity(), encoder, Point(SIZE))
            learn(counter, lambda chance=chance: counts(chance, 32, 20), 3 if study.quick else 250, rate=1e-2)
            for length, kept in ((20, wrong), (60, long)):
                test = counts(np.random.default_rng(seed), 200, length)
                with torch.no_grad():
                    error = 10 * (counter.best(*test[:2])[:, -1] - test.target[:, -1]).abs().mean()
                kept[name].append(float(error))
            chance = plant(seed)
            model = writer(RecurrentDecoder(WIDTH, sizes=(WIDTH,), cell=cell), WIDTH, letters.letters)
            learn(
                model,
                lambda chance=chance: letters.draw(chance, 16, 60),
                2 if study.quick else 200,
                rate=5e-3,
            )
            text[name].append(nats(model, held))
    found = {name: study.measured(f"miscounted at length 20, {name}", wrong[name]) for name in CELLS}
    later = {name: study.measured(f"miscounted at length 60, {name}", long[name]) for name in CELLS}
    loss = {name: study.measured(f"nats a letter, {name}", text[name]) for name in CELLS}
    study.expect("a coupled cell has 0.75 of the LSTM's parameters", sizes["coupled"] == 0.75 * sizes["LSTM"])
    study.expect(
        "it miscounts more than the LSTM at length 60, three times what it saw",
        later["coupled"] > later["LSTM"],
    )
    study.expect("by a factor of two or more", later["coupled"] > 2 * later["LSTM"])
    study.expect("it is worse than the LSTM on text", loss["coupled"] > loss["LSTM"])
    study.expect(
        "GRU and LSTM are within 3 % of each other on text", abs(loss["GRU"] / loss["LSTM"] - 1) < 0.03
    )
    figure, (left, right) = picture(2)
    places = np.arange(len(CELLS))
    left.bar(places - 0.2, list(found.values()), 0.4, label="length 20, as in training")
    left.bar(places + 0.2, list(later.values()), 0.4, label="length 60")
    left.set_xticks(places, list(CELLS))
    left.set(ylabel="miscounted ones, mean")
    left.legend(fontsize=8)
    bars(right, list(CELLS), list(text.values()))
    right.set(ylabel="nats a letter, English help texts", ylim=(0.9 * min(loss.values()), None))
    study.finish(
        figure, f"Whether peepholes help: {loss['LSTM'] - loss['peephole']:+.3f} nats a letter here."
    )


if __name__ == "__main__":
    main()
