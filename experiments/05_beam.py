"""Claim 5: beam search finds more probable translations than greedy decoding.

    python experiments/05_beam.py

A small translator of the invented language is trained, in which every word has a synonym, so that
translations are uncertain. Log-probabilities are the model's own, with no length penalty.
"""

import numpy as np
import torch

from problems import EOS, SOS, invented, translator
from study import Study, begin, learn, picture, plant
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.scores.scaled import ScaledDot
from weft.search.beam import beam
from weft.search.greedy import greedy

WIDTHS = (2, 4, 8)
SIZE = 32


def scores(study: Study, seed: int) -> dict[int, np.ndarray]:
    """The log-probability of what each beam width found for each sentence; width 1 is greedy."""
    chance = plant(seed)
    encoder = RecurrentEncoder(SIZE, sizes=(SIZE,), cell=GRU, bidirectional=True)
    decoder = RecurrentDecoder(SIZE, encoder, sizes=(SIZE,), cell=GRU, score=ScaledDot, key_size=SIZE)
    model = translator(encoder, decoder, SIZE, words=12)
    draw = {"words": 12, "doubt": 0.4}
    learn(model, lambda: invented(chance, 32, 3, 8, **draw), 5 if study.quick else 150, rate=5e-3)
    found: dict[int, list[float]] = {width: [] for width in (1, *WIDTHS)}
    for _ in range(2 if study.quick else 6):
        batch = invented(chance, 30, 3, 8, **draw)
        first = torch.full((30,), SOS)
        with torch.no_grad():
            state = model.start(batch.source, batch.source_mask)
            single = greedy(model.step, state, first, eos=EOS, max_length=20)
            found[1] += single.logp[:, 0].tolist()
            for width in WIDTHS:
                wide = beam(model.step, state, first, eos=EOS, max_length=20, width=width, length_penalty=0.0)
                found[width] += wide.logp[:, 0].tolist()
    return {width: np.array(values) for width, values in found.items()}


def main() -> None:
    """Train, search, judge, draw."""
    study = begin(5, "Beam search finds more probable translations than greedy decoding.")
    found = [scores(study, seed) for seed in study.seeds]
    gain = {width: [float((one[width] - one[1]).mean()) for one in found] for width in WIDTHS}
    more = {width: [float((one[width] > one[1] + 1e-6).mean()) for one in found] for width in WIDTHS}
    less = {width: [float((one[width] < one[1] - 1e-6).mean()) for one in found] for width in WIDTHS}
    means = {
        width: study.measured(
            f"log-probability gained over greedy, nats a sentence, beam {width}", gain[width]
        )
        for width in WIDTHS
    }
    for width in WIDTHS:
        study.measured(f"share of sentences with a more probable translation, beam {width}", more[width])
        study.measured(f"share with a less probable one, beam {width}", less[width])
    study.expect(
        "every beam gains in the mean, with every seed", all(min(gain[width]) > 0 for width in WIDTHS)
    )
    study.expect("the wider, the more", means[2] <= means[4] <= means[8])
    study.expect(
        "more sentences gain than lose, at every width", all(sum(more[w]) > sum(less[w]) for w in WIDTHS)
    )
    figure, (left, right) = picture(2)
    names = [f"beam {width}" for width in WIDTHS]
    left.bar(names, list(means.values()))
    left.set(ylabel="log-probability over greedy, nats")
    right.bar(names, [100 * float(np.mean(more[width])) for width in WIDTHS], label="more probable")
    right.bar(names, [-100 * float(np.mean(less[width])) for width in WIDTHS], label="less probable")
    right.axhline(0, color="black", linewidth=0.8)
    right.set(ylabel="% of sentences")
    right.legend(fontsize=8)
    study.finish(figure, "A beam may lose: it drops a beginning whose end would have been the best.")


if __name__ == "__main__":
    main()
