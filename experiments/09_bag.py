"""Claim 9: a bag of words cannot tell two sentences of the same words; n-grams and sequence models can.

    python experiments/09_bag.py

"i like it i do not see all of it" and "i do not like it i see all of it", with 12 x 12 pairs of verbs, a third
of which is kept for the test. In the present tense both sentences are the same bag, to the word.
"""

from itertools import product

import numpy as np
import torch

from problems import Labels, numbered
from study import bars, begin, learn, picture, plant
from weft.models import Predictor
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.bag import BagEncoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.ngram import NgramEncoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools.mean import Mean

FEEL = "like love enjoy want need praise value trust admire favour cherish welcome".split()
MEET = "see read watch hear finish follow study open try notice visit get".split()
WIDTH = 16


def sentences() -> list[tuple[str, str]]:
    """For each pair of verbs the sentence of one who liked it, and of one who did not."""
    return [
        (f"i {feel} it i do not {meet} all of it", f"i do not {feel} it i {meet} all of it")
        for feel, meet in product(FEEL, MEET)
    ]


def encoder(name: str) -> Encoder:
    """The reader under test; all are read by their mean."""
    if name == "bag of words":
        return BagEncoder(WIDTH)
    if name == "bag of 3-grams":
        return NgramEncoder(WIDTH, length=3, size=WIDTH)
    if name == "LSTM":
        return RecurrentEncoder(WIDTH, sizes=(WIDTH,))
    return TransformerEncoder(WIDTH, size=WIDTH, num_layers=1, num_heads=2, dropout=0.0)


def main() -> None:
    """Train, judge, draw."""
    study = begin(
        9,
        "An order-blind bag of words cannot tell two sentences of the same words; n-grams and sequence models can.",
        seeds=5,
    )
    pairs = sentences()
    words = [sentence.split() for pair in pairs for sentence in pair]
    known, numbers = numbered(words, 1000)
    source, target = torch.tensor(numbers), torch.tensor([1, 0] * len(pairs))
    names = ("bag of words", "bag of 3-grams", "LSTM", "Transformer")
    right: dict[str, list[float]] = {name: [] for name in names}
    apart = 0.0
    for seed in study.seeds:
        for name in names:
            chance = plant(seed)
            order = chance.permutation(len(pairs))
            rows = np.stack([2 * order, 2 * order + 1], 1)
            train, test = rows[: len(pairs) * 2 // 3].ravel(), rows[len(pairs) * 2 // 3 :].ravel()
            read = encoder(name)
            model = Predictor(
                Tokens(len(known) + 1, WIDTH), read, Categorical(read.size, 2), pool=Mean(read.size)
            )

            def draw(train: np.ndarray = train, chance: np.random.Generator = chance) -> Labels:
                at = chance.choice(train, 32)
                return Labels(source[at], torch.ones(32, source.shape[1], dtype=torch.bool), target[at])

            learn(model, draw, 5 if study.quick else 150)
            mask = torch.ones(len(test), source.shape[1], dtype=torch.bool)
            with torch.no_grad():
                said = model(source[test], mask)[:, 0]
            right[name].append(float((said.argmax(-1) == target[test]).double().mean()))
            if name == "bag of words":
                apart = max(apart, float((said[::2] - said[1::2]).abs().max()))
    means = {name: study.measured(f"test accuracy, {name}", values) for name, values in right.items()}
    study.numbers["largest difference between the bag's answers to the two sentences of a pair"] = apart
    study.expect("the bag says the same of both sentences of every pair (to 1e-5)", apart < 1e-5)
    study.expect("so it is right half the time, within 0.03", abs(means["bag of words"] - 0.5) < 0.03)
    for name in names[1:]:
        study.expect(f"{name}: right on more than 0.95 of unseen pairs of verbs", means[name] > 0.95)
    figure, (axes,) = picture()
    bars(axes, names, list(right.values()))
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.set(ylabel="accuracy on unseen pairs of verbs", ylim=(0, 1.02))
    axes.tick_params(axis="x", labelsize=8)
    study.finish(figure)


if __name__ == "__main__":
    main()
