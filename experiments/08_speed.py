"""Claim 8: Transformers train faster than recurrent models at equal quality.

    python experiments/08_speed.py

Language models of letters with about the same number of parameters; the loss on held-out text over the CPU time of
the updates, one thread. CPU time is what this process used, so that other work on the machine counts little.
Source: Vaswani et al. 2017, table 2, which is about GPUs; this is about one core.
"""

import time

import numpy as np

from problems import english_letters, nats, writer
from study import begin, learn, picture, plant
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder

WIDTH, EVERY = 64, 25


def decoder(name: str) -> Decoder:
    """About 66,000 parameters each."""
    if name == "Transformer":
        return TransformerDecoder(WIDTH, size=WIDTH, num_layers=2, num_heads=2, inner=128, dropout=0.0)
    return RecurrentDecoder(
        WIDTH, sizes=(WIDTH, WIDTH) if name == "LSTM" else (80, 64), cell=LSTM if name == "LSTM" else GRU
    )


def main() -> None:
    """Train, judge, draw."""
    study = begin(8, "Transformers train faster than recurrent models at equal quality.", seeds=3)
    letters = english_letters()
    held = letters.held_out(64, 8 if study.quick else 40)
    names = ("LSTM", "GRU", "Transformer")
    curves: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in names}
    for seed in study.seeds:
        for name in names:
            chance = plant(seed)
            model = writer(decoder(name), WIDTH, letters.letters)
            study.numbers[f"parameters, {name}"] = sum(p.numel() for p in model.parameters())
            course: list[tuple[float, float]] = []
            lost = [0.0, time.process_time()]  # time spent looking, and the beginning

            def look(update: int, model=model, course=course, lost=lost) -> None:
                if update % EVERY == 0:
                    now = time.process_time()
                    course.append((now - lost[1] - lost[0], nats(model, held)))
                    lost[0] += time.process_time() - now

            learn(
                model,
                lambda chance=chance: letters.draw(chance, 16, 64),
                10 if study.quick else 401,
                rate=4e-3,
                watch=look,
            )
            curves[name].append(course)
    ends = {
        name: study.measured(
            f"nats a letter after {EVERY * (len(curves[name][0]) - 1)} updates, {name}",
            [c[-1][1] for c in curves[name]],
        )
        for name in names
    }
    for name in names:
        study.measured(f"CPU seconds of these updates, {name}", [c[-1][0] for c in curves[name]])
    goal = max(ends.values()) + 0.01  # all reach it, but for chance
    reached = {}
    for name in names:
        spent = [next((at for at, loss in course if loss <= goal), course[-1][0]) for course in curves[name]]
        reached[name] = study.measured(f"CPU seconds to {goal:.2f} nats, {name}", spent)
    study.expect(
        "an update of the Transformer takes less CPU time than one of the LSTM",
        np.mean([c[-1][0] for c in curves["Transformer"]]) < np.mean([c[-1][0] for c in curves["LSTM"]]),
    )
    study.expect(
        "the Transformer reaches the loss that all reach in less CPU time than the LSTM",
        reached["Transformer"] < reached["LSTM"],
    )
    study.expect("and in less than the GRU", reached["Transformer"] < reached["GRU"])
    figure, (axes,) = picture()
    for name in names:
        courses = np.array(curves[name]).mean(0)
        axes.plot(courses[:, 0], courses[:, 1], marker=".", label=name)
    axes.set(
        xlabel="CPU seconds of training, one thread",
        ylabel="nats a letter, held out",
        ylim=(min(ends.values()) - 0.1, 3.2),
    )
    axes.legend()
    study.finish(
        figure,
        "Pieces of 64 letters on one core: what parallel hardware makes of long sequences was not measured.",
    )


if __name__ == "__main__":
    main()
