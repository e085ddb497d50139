"""Claim 5: Beam search finds more probable translations than greedy decoding.

    python experiments/05_beam.py

Tested: GRUs with attention learn to translate an invented language in 200 updates. Each word is rendered by its synonym
with probability 0.4, so that translations are uncertain. Compared are the log-probabilities that the model gives to
what it finds, mean of 240 sentences, without a length penalty.

Picture: Left, log-probability gained over greedy decoding by beam width. Right, the share of sentences with a more
and with a less probable translation.

Limits: More probable is not better: quality was not measured. A beam may also lose, because it can drop the
beginning of the best translation.

Source: Sutskever, Vinyals & Le 2014, section 3.2.
"""

from typing import Any

import numpy as np
import torch

from problems import EOS, SOS, invented, translator
from study import Part, begin, curves, learn, picture, plant
from weft.search import beam_search, greedy_search

WIDTHS, ROWS = (2, 4, 8), 30
PARTS = {
    f"{width}": Part(f"Beam {width} finds more probable translations than greedy.", "nats a sentence")
    for width in WIDTHS
}


def once(seed: int, quick: bool) -> dict[str, Any]:
    """The log-probability of what each width found, and how many sentences gained or lost."""
    chance = plant(seed)
    model = translator(32)
    learn(model, lambda: invented(chance, 32, 3, 8, doubt=0.4), 5 if quick else 200, rate=5e-3)
    logp: dict[int, list[float]] = {width: [] for width in (1, *WIDTHS)}
    first = torch.full((ROWS,), SOS)
    for _ in range(2 if quick else 8):
        batch = invented(chance, ROWS, 3, 8, doubt=0.4)
        with torch.no_grad():
            state = model.start(batch.source, batch.source_mask)
            logp[1] += greedy_search(model.step, state, first, eos=EOS, max_length=20).logp[:, 0].tolist()
            for width in WIDTHS:
                wide = beam_search(
                    model.step, state, first, eos=EOS, max_length=20, width=width, length_penalty=0.0
                )
                logp[width] += wide.logp[:, 0].tolist()
    found = {width: np.array(values) for width, values in logp.items()}
    gains = [found[width] - found[1] for width in WIDTHS]
    return {
        "logp": [one.mean() for one in found.values()],
        "more probable": [100 * (gain > 1e-5).mean() for gain in gains],
        "less probable": [100 * (gain < -1e-5).mean() for gain in gains],
    }


def main() -> None:
    """Train, search, judge, draw."""
    study = begin(__doc__, PARTS, seeds=8)
    found = study.repeat(once)
    greedily = found["logp"][:, :1]
    for column, width in enumerate(WIDTHS, 1):
        study.compare(f"{width}", found["logp"][:, column], greedily[:, 0])
    figure, (left, right) = picture(2)
    curves(left, WIDTHS, {"gain over greedy": found["logp"][:, 1:] - greedily})
    left.set(xlabel="beam width", ylabel="log-probability gained (nats a sentence)", xticks=WIDTHS)
    left.set_ylim(bottom=0)
    curves(right, WIDTHS, {name: found[name] for name in ("more probable", "less probable")})
    right.set(xlabel="beam width", ylabel="sentences (%)", xticks=WIDTHS)
    study.finish(figure)


if __name__ == "__main__":
    main()
