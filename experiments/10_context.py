"""Claim 10: A word has one static vector, but different contextual vectors in different sentences.

    python experiments/10_context.py

Tested: A small LSTM language model of English help texts, 300 updates. The static vector of a word is its row of the
embedding table, the contextual one is h after reading it. For places of the twenty most frequent words: the distance
1 - cosine to 30 other places of the same word, and whether the place with the nearest vector is followed by the same
next word, which shows that the vectors differ by their context and not at random.

Picture: Left, the distance between two places of a word. Right, how often two places of a word have the same next word,
for any two places and for the nearest by contextual vector.

Limits: A forward model of 64 units on one kind of text; the vectors of large models were not measured.

Source: Peters et al. 2018, section 5.
"""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from problems import Pairs, nats, numbered, padded, sentences, writer
from study import Part, begin, learn, picture, plant, points
from weft.nn.decoders.recurrent import RecurrentDecoder

WIDTH, WORDS, OTHERS = 64, 1200, 30
PARTS = {
    "static": Part("Static vectors of a word are equal: both are the same row of a table.", theorem=True),
    "contextual": Part("Contextual vectors of a word in two places have a distance above 0.", "1 - cosine"),
    "next": Part("The nearest place has the same next word more often than any other place.", "% of places"),
}


def batch_of(rows: list[list[int]]) -> Pairs:
    """Each word to be told from those before it in its sentence."""
    tokens, mask = padded(rows, 25)
    return Pairs(tokens[:, :1], mask[:, :1], tokens[:, :-1], tokens[:, 1:], mask[:, 1:])


LINES = [line.lower().split() for line in sentences("en")]
NUMBERS = numbered([line for line in LINES if len(line) > 3], WORDS)[1]
TRAIN, HELD = NUMBERS[:-600], batch_of(NUMBERS[-600:])


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Distances of vectors, and how often the next word is the same (%)."""
    chance = plant(seed)
    model = writer(RecurrentDecoder(WIDTH, sizes=(WIDTH,)), WIDTH, WORDS + 1)
    learn(
        model,
        lambda: batch_of([TRAIN[row] for row in chance.integers(0, len(TRAIN), 24)]),
        3 if quick else 300,
        rate=5e-3,
    )
    with torch.no_grad():
        h = model.features(HELD)[HELD.target_mask]
    word, after = HELD.target_in[HELD.target_mask], HELD.target_out[HELD.target_mask]
    vectors = {"static": model.embed(word).detach(), "contextual": h}
    vectors = {name: normalize(vector.double(), dim=-1) for name, vector in vectors.items()}
    found: dict[str, list[float]] = {name: [] for name in ("static", "contextual", "any", "nearest")}
    for frequent in range(1, 21):
        places = torch.nonzero(word == frequent)[:, 0].numpy()
        for one in chance.choice(places, 20) if len(places) > OTHERS else ():
            others = torch.from_numpy(chance.permutation(places[places != one])[:OTHERS])
            same = (after[others] == after[one]).double()
            for name, vector in vectors.items():
                near = vector[others] @ vector[one]
                found[name].append(float(1 - near.mean()))
            found["any"].append(100 * float(same.mean()))
            found["nearest"].append(100 * float(same[near.argmax()]))  # by the contextual vectors
    return {name: np.mean(values) for name, values in found.items()} | {"loss": nats(model, HELD)}


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(__doc__, PARTS)
    found = study.repeat(once)
    study.check("static", abs(found["static"]).max(), 1e-9)
    study.compare("contextual", found["contextual"], 0.0)
    study.compare("next", found["nearest"], found["any"])
    study.measured("nats per word on held-out sentences", found["loss"])
    figure, (left, right) = picture(2)
    points(left, {name: found[name] for name in ("static", "contextual")})
    left.set(ylabel="1 - cosine, same word in two places")
    points(right, {"any place": found["any"], "nearest place": found["nearest"]})
    right.set(ylabel="same next word (% of places)", ylim=(0, None))
    study.finish(figure)


if __name__ == "__main__":
    main()
