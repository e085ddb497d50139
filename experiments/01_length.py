"""Claim 1: a plain encoder-decoder RNN gets worse as sentences grow longer; with attention it holds.

    python experiments/01_length.py

The invented language (problems.py): words in reverse order, each by its own word; lengths 3 to 18. Accuracy of the
words while the true ones are fed, by length. Natural text needs hours; docs/results.md has what was measured there.
Source: Cho et al. 2014, section 4; Bahdanau, Cho & Bengio 2015, figure 2.
"""

import numpy as np
import torch

from problems import invented, translator
from study import begin, interval, learn, picture, plant
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.scores.scaled import ScaledDot

SIZE = 48
LENGTHS = (3, 6, 9, 12, 15, 18)


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(
        1,
        "A plain encoder-decoder RNN loses quality as sentences grow longer; with attention it holds.",
        seeds=5,
    )
    ways = {"plain": "never", "attention": "late"}
    right = {name: np.zeros((len(study.seeds), len(LENGTHS))) for name in ways}
    for at, seed in enumerate(study.seeds):
        for name, enters in ways.items():
            chance = plant(seed)
            encoder = RecurrentEncoder(SIZE, sizes=(SIZE,), cell=GRU, bidirectional=True)
            decoder = RecurrentDecoder(
                SIZE, encoder, sizes=(SIZE,), cell=GRU, score=ScaledDot, key_size=SIZE, enters=enters
            )
            model = translator(encoder, decoder, SIZE, words=12)
            learn(
                model,
                lambda chance=chance: invented(chance, 32, 3, 18, words=12),
                5 if study.quick else 600,
                rate=5e-3,
            )
            for column, length in enumerate(LENGTHS):
                batch = invented(np.random.default_rng(length), 100, length, length, words=12)
                with torch.no_grad():
                    best = model.head.best(model.features(batch), batch.target_mask)
                right[name][at, column] = float((best == batch.target_out).double().mean())
    for name in ways:
        for column, length in enumerate(LENGTHS):
            study.measured(f"accuracy at length {length}, {name}", right[name][:, column])
    plain, attention = right["plain"].mean(0), right["attention"].mean(0)
    study.expect("plain: at length 18 at least 0.1 is lost against length 3", plain[0] - plain[-1] > 0.1)
    study.expect(
        "attention: less is lost than plain loses", attention[0] - attention[-1] < plain[0] - plain[-1]
    )
    study.expect("attention: less than 0.05 is lost", attention[0] - attention[-1] < 0.05)
    study.expect(
        "at length 18 attention is better with every seed",
        bool((right["attention"][:, -1] > right["plain"][:, -1]).all()),
    )
    figure, (axes,) = picture()
    for name in ways:
        found = [interval(list(column)) for column in right[name].T]
        axes.errorbar(
            LENGTHS,
            [mean for mean, _ in found],
            [half for _, half in found],
            marker="o",
            label=name,
            capsize=3,
        )
    axes.set(xlabel="words of the source", ylabel="accuracy of the words", ylim=(0, 1.02))
    axes.legend()
    study.finish(
        figure, "An invented language, 600 updates of the same size for both; not BLEU of natural text."
    )


if __name__ == "__main__":
    main()
