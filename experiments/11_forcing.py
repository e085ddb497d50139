"""Claim 11: teacher forcing helps most early in training.

    python experiments/11_forcing.py

The invented language, four ways to feed the decoder in training: true words all along, its own all along, true words
in the first half only, true words in the second half only. What the model says running free, over updates.
Source: Bengio, Vinyals, Jaitly & Shazeer 2015.
"""

from functools import partial

import numpy as np
import torch

from problems import Pairs, invented, translator
from study import begin, learn, picture, plant
from weft.models import Generator
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.scores.scaled import ScaledDot

SIZE, SHORT, LONG = 32, 3, 8
WAYS = {"always": (1.0, 1.0), "never": (0.0, 0.0), "first half": (1.0, 0.0), "second half": (0.0, 1.0)}


@torch.no_grad()
def running_free(model: Generator, batch: Pairs) -> float:
    """The share of words that are right when the model reads its own."""
    model.eval()
    state = model.start(batch.source, batch.source_mask)
    token, right = batch.target_in[:, 0], []
    for t in range(batch.target_out.shape[1]):
        logp, state = model.step(token, state)
        token = logp.argmax(-1)
        right.append((token == batch.target_out[:, t]).double().mean())
    return float(torch.stack(right).mean())


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(11, "Teacher forcing helps most early in training.")
    updates = 8 if study.quick else 240
    looks = [updates * part // 8 for part in range(8)]
    curves: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    for seed in study.seeds:
        test = [invented(np.random.default_rng(length), 40, length, length, words=12) for length in (4, 6, 8)]
        for name, (early, late) in WAYS.items():
            chance = plant(seed)
            encoder = RecurrentEncoder(SIZE, sizes=(SIZE,), cell=GRU, bidirectional=True)
            decoder = RecurrentDecoder(SIZE, encoder, sizes=(SIZE,), cell=GRU, score=ScaledDot, key_size=SIZE)
            model = translator(encoder, decoder, SIZE, words=12)
            course: list[float] = []

            def look(update: int, model: Generator = model, course: list[float] = course) -> None:
                if update in looks:
                    course.append(float(np.mean([running_free(model, batch) for batch in test])))

            def loss(
                batch: Pairs, update: int, model: Generator = model, early: float = early, late: float = late
            ):
                return model.loss(batch, feeding=early if update < updates // 2 else late)

            draw = partial(invented, chance, 32, SHORT, LONG, words=12)
            learn(model, draw, updates, rate=5e-3, loss=loss, watch=look)
            course.append(float(np.mean([running_free(model, batch) for batch in test])))
            curves[name].append(course)
    found = {name: np.array(curves[name]) for name in WAYS}
    half = {
        name: study.measured(f"right, running free, after half of the updates, {name}", found[name][:, 4])
        for name in WAYS
    }
    end = {
        name: study.measured(f"right, running free, at the end, {name}", found[name][:, -1]) for name in WAYS
    }
    study.expect(
        "after half of the updates, true words have taught more than own ones", half["always"] > half["never"]
    )
    study.expect(
        "forcing in the first half only ends at least as well as in the second half only",
        end["first half"] >= end["second half"],
    )
    study.expect(
        "given forcing in the first half, the second half's adds less than the first half's did",
        end["always"] - end["first half"] < half["always"] - half["never"],
    )
    figure, (axes,) = picture()
    for name in WAYS:
        axes.plot(
            [*looks, updates],
            found[name].mean(0),
            marker="o",
            label=f"true words {name}" if name in ("always", "never") else f"in the {name}",
        )
    axes.axvline(updates / 2, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="updates", ylabel="words right, running free", ylim=(0, 1.02))
    axes.legend(fontsize=8)
    study.finish(
        figure,
        "An invented language of short sentences: after half of the updates the difference is within the intervals.",
    )


if __name__ == "__main__":
    main()
