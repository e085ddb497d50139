"""Claim 8: Transformers train faster than recurrent models at equal quality (on one CPU core).

    python experiments/08_speed.py

Tested: Language models of English letters with about 75,000 parameters. Speed: updates per second for pieces of 64 to
1,024 letters, 4,096 letters an update. Quality: the loss on held-out text after equal CPU time (8 seconds, pieces of
64), each model with the best of four learning rates, chosen on a seed of its own.

Picture: Left, updates per second over the length of a piece. Right, held-out loss over CPU time.

Limits: One core. The claim is usually made about GPUs, where a Transformer computes all positions of a sequence at
once: not tested. Small models on short training; CPU time of this process.

Source: Vaswani et al. 2017, table 2.
"""

import math
import time
from typing import Any

import numpy as np

from problems import english_letters, nats, writer
from study import Part, begin, curves, learn, picture, plant
from weft.models import Generator
from weft.nn import Decoder, RecurrentDecoder, TransformerDecoder
from weft.nn.cells import GRU, LSTM

WIDTH, SECONDS, LETTERS_PER_UPDATE = 64, 8.0, 4096
LENGTHS = (64, 128, 256, 512, 1024)
NAMES = ("LSTM", "GRU", "Transformer")
RATES = (2e-3, 4e-3, 8e-3, 16e-3)
GRID = np.linspace(0, 1, 17)
PARTS = {
    f"{other}, {length}": Part(
        f"At {length:,} letters the Transformer makes more updates per second than the {other}.",
        "log₂ of updates per second",
    )
    for other in ("LSTM", "GRU")
    for length in (64, 1024)
} | {
    other: Part(
        f"After equal CPU time the {other} has a higher loss per letter than the Transformer.", "nats"
    )
    for other in ("LSTM", "GRU")
}
LETTERS = english_letters()


def model_of(name: str) -> Generator:
    """About 75,000 parameters each."""
    if name == "Transformer":
        decoder: Decoder = TransformerDecoder(
            WIDTH, size=WIDTH, num_layers=2, num_heads=2, inner=128, dropout=0.0
        )
    else:
        sizes, cell = ((WIDTH, WIDTH), LSTM) if name == "LSTM" else ((80, WIDTH), GRU)
        decoder = RecurrentDecoder(WIDTH, sizes=sizes, cell=cell)
    return writer(decoder, WIDTH, LETTERS.letters)


def speed(name: str, length: int) -> float:
    """log₂ of the updates per second: the median of five, after one that is not counted."""
    chance, model, began = plant(1), model_of(name), []
    rows = LETTERS_PER_UPDATE // length
    learn(
        model,
        lambda: LETTERS.draw(chance, rows, length),
        6,
        watch=lambda _: began.append(time.process_time()),
    )
    began.append(time.process_time())
    return -math.log2(float(np.median(np.diff(began)[1:])))


def course(name: str, seed: int, rate: float, quick: bool) -> np.ndarray:
    """The held-out loss at the times of GRID, as shares of the CPU time."""
    chance, seconds = plant(seed), 0.2 if quick else SECONDS
    model, held = model_of(name), LETTERS.held_out(64, 8 if quick else 40)
    spent, seen = 0.0, []
    begun = time.process_time()

    def watch(update: int) -> bool:
        nonlocal spent, begun
        spent += time.process_time() - begun
        if spent >= seconds * GRID[min(len(seen), len(GRID) - 1)]:
            seen.append((spent / seconds, nats(model, held)))
        begun = time.process_time()  # looking costs nothing
        return spent >= seconds

    learn(model, lambda: LETTERS.draw(chance, 16, 64), 10**6, rate=rate, watch=watch)
    return np.interp(GRID, *np.array(seen).T)


def main() -> None:
    """Choose rates, train, judge, draw."""
    study = begin(__doc__, PARTS, seeds=5)
    best = {name: min(RATES, key=lambda rate: course(name, 1, rate, study.quick)[-1]) for name in NAMES}
    study.numbers["learning rates"] = ", ".join(f"{name} {rate:g}" for name, rate in best.items())

    def once(seed: int, quick: bool) -> dict[str, Any]:
        found: dict[str, Any] = {f"speed, {name}": [] for name in NAMES}
        for length in LENGTHS[:1] * 5 if quick else LENGTHS:
            for name in NAMES:
                found[f"speed, {name}"].append(speed(name, length))
        return found | {name: course(name, seed, best[name], quick) for name in NAMES}

    found = study.repeat(once)
    ours = found["speed, Transformer"]
    for other in ("LSTM", "GRU"):
        for column, length in ((0, 64), (-1, 1024)):
            study.compare(f"{other}, {length}", ours[:, column], found[f"speed, {other}"][:, column])
    for other in ("LSTM", "GRU"):
        study.compare(other, found[other][:, -1], found["Transformer"][:, -1])
    for name in NAMES:
        rates = 2 ** found[f"speed, {name}"].mean(0)
        study.numbers[f"updates per second at {LENGTHS} letters, {name}"] = ", ".join(
            f"{one:.1f}" for one in rates
        )
    figure, (left, right) = picture(2)
    curves(left, LENGTHS, {name: 2 ** found[f"speed, {name}"] for name in NAMES})
    left.set_xscale("log", base=2)
    left.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
    left.set(xlabel="letters in a piece (4,096 letters an update)", ylabel="updates per second, one core")
    left.set_ylim(bottom=0)
    curves(right, SECONDS * GRID[1:], {name: found[name][:, 1:] for name in NAMES}, every=3)
    right.set(xlabel="CPU seconds of training", ylabel="nats a letter, held-out text")
    study.finish(figure)


if __name__ == "__main__":
    main()
