"""Claim 10: one word has one static vector, but different contextual vectors in different sentences.

    python experiments/10_context.py

A small LSTM language model of English help texts. The static vector of a word is its row of the embedding table, the
contextual one is h after reading it. Of the twenty most frequent words: the cosine between two places of the same
word, and whether of 30 other places the one with the nearest vector goes on with the same next word.
Source: Peters et al. 2018, section 5.
"""

import numpy as np
import torch
from torch.nn.functional import normalize

from problems import Pairs, nats, numbered, padded, sentences, writer
from study import bars, begin, learn, picture, plant
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.recurrent import RecurrentDecoder

WIDTH, WORDS, OTHERS = 64, 1200, 30


def batch_of(rows: list[list[int]]) -> Pairs:
    """Each word to be told from those before it in its sentence."""
    tokens, mask = padded(rows, 25)
    return Pairs(tokens[:, :1], mask[:, :1], tokens[:, :-1], tokens[:, 1:], mask[:, 1:])


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(
        10,
        "One word has one static vector, but different contextual vectors in different sentences.",
        seeds=2,
    )
    lines = [line.lower().split() for line in sentences("en")]
    lines = [line for line in lines if len(line) > 3]
    _, numbers = numbered(lines, WORDS)
    train, held = numbers[:-600], numbers[-600:]
    names = ("static", "contextual")
    alike: dict[str, list[float]] = {name: [] for name in names}
    same_next: dict[str, list[float]] = {name: [] for name in ("any other place", *names)}
    losses = []
    for seed in study.seeds:
        chance = plant(seed)
        model = writer(RecurrentDecoder(WIDTH, sizes=(WIDTH,), cell=LSTM), WIDTH, WORDS + 1)

        def draw(chance: np.random.Generator = chance) -> Pairs:
            return batch_of([train[row] for row in chance.integers(0, len(train), 24)])

        learn(model, draw, 3 if study.quick else 300, rate=5e-3)
        batch = batch_of(held)
        losses.append(nats(model, batch))
        with torch.no_grad():
            h = model.features(batch)[batch.target_mask]
        word, after = batch.target_in[batch.target_mask], batch.target_out[batch.target_mask]
        vectors = {
            "static": normalize(model.embed(word).detach(), dim=-1),
            "contextual": normalize(h, dim=-1),
        }
        cosines: dict[str, list[float]] = {name: [] for name in names}
        hits: dict[str, list[float]] = {name: [] for name in same_next}
        for frequent in range(1, 21):
            places = torch.nonzero(word == frequent)[:, 0].numpy()
            if len(places) <= OTHERS:
                continue
            for one in chance.choice(places, 20):
                others = torch.from_numpy(chance.permutation(places[places != one])[:OTHERS])
                hits["any other place"].append(float((after[others] == after[one]).double().mean()))
                for name in names:
                    near = vectors[name][others] @ vectors[name][one]
                    cosines[name].append(float(near.mean()))
                    nearest = others[near > near.max() - 1e-5]  # of equal ones each counts
                    hits[name].append(float((after[nearest] == after[one]).double().mean()))
        for name in names:
            alike[name].append(float(np.mean(cosines[name])))
        for name, values in hits.items():
            same_next[name].append(float(np.mean(values)))
    study.measured("nats a word, held-out sentences", losses)
    cosine = {
        name: study.measured(f"cosine of the same word in two sentences, {name}", alike[name])
        for name in names
    }
    hit = {name: study.measured(f"same next word, {name}", values) for name, values in same_next.items()}
    study.expect(
        "static vectors of a word are one and the same (cosine 1 to 1e-5)", abs(cosine["static"] - 1) < 1e-5
    )
    study.expect("contextual ones differ (mean cosine below 0.9)", cosine["contextual"] < 0.9)
    study.expect(
        "and tell something of the sentence: the nearest place goes on alike more often than any",
        hit["contextual"] > 1.2 * hit["any other place"],
    )
    figure, (left, right) = picture(2)
    bars(left, names, [alike[name] for name in names])
    left.set(ylabel="cosine, same word, two sentences", ylim=(0, 1.05))
    bars(right, ["any other\nplace", "nearest,\nstatic", "nearest,\ncontextual"], list(same_next.values()))
    right.set(ylabel="goes on with the same word")
    study.finish(figure, "Static vectors cannot choose: all places of a word are equally near.")


if __name__ == "__main__":
    main()
