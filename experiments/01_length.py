"""Claim 1: A plain encoder-decoder RNN loses quality as sentences grow longer; with attention it loses less.

    python experiments/01_length.py

Tested: GRU translators with and without attention, trained with the same 500 updates on an invented language
(reverse the words, replace each by its own word; 3 to 18 words), each at the best of four learning rates. Quality is
the accuracy of the words while the true ones are fed.

Picture: Accuracy over the length of the source, with and without attention; the plain model falls with length.

Tries: The first design (seeds 11 to 16) had one learning rate for both models; all parts held.

Limits: Not natural text and not BLEU. The models have 48 units; a wider plain model falls later.

Source: Cho et al. 2014, section 4; Bahdanau, Cho & Bengio 2015, figure 2.
"""

import numpy as np
import torch

from problems import invented, translator
from study import Part, begin, curves, learn, picture, plant

SIZE = 48
LENGTHS = (3, 6, 9, 12, 15, 18)
NAMES, RATES = ("plain", "attention"), (2.5e-3, 5e-3, 1e-2, 2e-2)
PARTS = {
    "plain": Part("Plain: accuracy at 3 words is above accuracy at 18 words.", "accuracy"),
    "less": Part("From 3 to 18 words the plain model loses more than the one with attention.", "accuracy"),
    "longest": Part("At 18 words the model with attention is above the plain one.", "accuracy"),
}


def accuracies(name: str, rate: float, seed: int, quick: bool) -> list[float]:
    """Accuracy at each length, after training."""
    chance = plant(seed)
    model = translator(SIZE, attention=name == "attention")
    learn(model, lambda: invented(chance, 32, 3, 18), 5 if quick else 500, rate=rate)
    found = []
    for length in LENGTHS:
        batch = invented(np.random.default_rng([seed, length]), 200, length, length)
        with torch.no_grad():
            best = model.head.best(model.features(batch), batch.target_mask)
        found.append(float((best == batch.target_out).double().mean()))
    return found


def main() -> None:
    """Choose rates, train, measure, judge, draw."""
    study = begin(__doc__, PARTS, first=201, tries=2)
    rates = study.best_rates(
        "words", NAMES, RATES, lambda name, *way: 1 - float(np.mean(accuracies(name, *way, study.quick)))
    )
    found = study.repeat(
        lambda seed, quick: {name: accuracies(name, rates[name], seed, quick) for name in NAMES}
    )
    plain, attention = found["plain"], found["attention"]
    study.compare("plain", plain[:, 0], plain[:, -1])
    study.compare("less", plain[:, 0] - plain[:, -1], attention[:, 0] - attention[:, -1])
    study.compare("longest", attention[:, -1], plain[:, -1])
    figure, (axes,) = picture()
    curves(axes, LENGTHS, found)
    axes.set(xlabel="length of the source (words)", ylabel="accuracy of the words", ylim=(0, 1.02))
    study.finish(figure)


if __name__ == "__main__":
    main()
