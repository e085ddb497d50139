"""Claim 11: Teacher forcing helps most early in training.

    python experiments/11_forcing.py

Tested: GRU translators with attention of an invented language, 240 updates. One is fed the true words in the first half
of the training and its own in the second half, the other the reverse. Measured is the accuracy when the model is fed
its own words. "Most early" means that true words in the first half lead to a better model than in the second half.

Picture: Accuracy over updates when the true words are fed in the first or in the second half of the training.

Tries: A first run with eight other seeds (11 to 18) left both parts undecided (0.044 ± 0.045 and -0.029 ± 0.043), hence
twenty here.

Limits: Short sentences (3 to 8 words) and one point of change, the middle; no gradual schedule.

Source: Bengio, Vinyals, Jaitly & Shazeer 2015.
"""

from typing import Any

import numpy as np
import torch

from problems import Pairs, invented, translator
from study import Part, begin, curves, learn, picture, plant
from weft.figures.colours import INK
from weft.models import Generator

UPDATES, LOOKS = 240, 8
PARTS = {
    "early": Part(
        "After the first half, true words have led to a higher accuracy than own ones.", "accuracy"
    ),
    "most": Part("At the end, true words in the first half led to more than in the second half.", "accuracy"),
}


@torch.no_grad()
def running_free(model: Generator, batch: Pairs) -> float:
    """The share of words that are right when the model reads its own."""
    model.eval()
    state = model.start(batch.source, batch.source_mask)
    token, right = batch.target_in[:, 0], []
    for wanted in batch.target_out.T:
        logp, state = model.step(token, state)
        token = logp.argmax(-1)
        right.append((token == wanted).double().mean())
    return float(torch.stack(right).mean())


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Accuracy at the looks, for true words in either half."""
    updates = LOOKS if quick else UPDATES
    test = [invented(np.random.default_rng([seed, length]), 60, length, length) for length in (4, 6, 8)]
    found = {}
    for name, (early, late) in {"first half": (1.0, 0.0), "second half": (0.0, 1.0)}.items():
        chance = plant(seed)
        model, course = translator(32), []

        def look(update: int) -> None:
            if update % (updates // LOOKS) == 0:
                course.append(float(np.mean([running_free(model, batch) for batch in test])))

        learn(
            model,
            lambda: invented(chance, 32, 3, 8),
            updates,
            rate=5e-3,
            loss=lambda batch, update: model.loss(batch, feeding=early if update < updates // 2 else late),
            watch=look,
        )
        look(updates)
        found[name] = course
    return found


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(__doc__, PARTS, seeds=20, first=31, tries=2)
    found = study.repeat(once)
    first, second = found["first half"], found["second half"]
    study.compare("early", first[:, LOOKS // 2], second[:, LOOKS // 2])
    study.compare("most", first[:, -1], second[:, -1])
    figure, (axes,) = picture()
    looks = np.linspace(0, UPDATES, LOOKS + 1)
    curves(axes, looks, {f"true words in the {name}": values for name, values in found.items()})
    axes.axvline(UPDATES / 2, color=INK, linewidth=1, linestyle=":")
    axes.set(xlabel="updates", ylabel="accuracy of the words, fed its own", ylim=(0, 1.02))
    study.finish(figure)


if __name__ == "__main__":
    main()
