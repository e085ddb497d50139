"""Claim 9: A bag of words cannot distinguish two sentences of the same words; n-grams and sequence models can.

    python experiments/09_bag.py

Tested: Who liked it? "i like it i do not see all of it" and "i do not like it i see all of it" have the same words.
Classifiers learn 96 of the 144 pairs of verbs in 150 updates and are asked about the other 48.

Picture: Accuracy on unseen pairs of verbs of a bag of words, a bag of 3-grams, an LSTM and a Transformer.

Limits: Made-up sentences of one pattern.

Source: Iyyer et al. 2015 on what a bag loses.
"""

from itertools import product
from typing import Any

import numpy as np
import torch

from problems import Labels, numbered
from study import Part, begin, learn, level, picture, plant, points
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import BagEncoder, Encoder, NgramEncoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import Mean

FEEL = "like love enjoy want need praise value trust admire favour cherish welcome".split()
MEET = "see read watch hear finish follow study open try notice visit get".split()
WIDTH = 16
NAMES = ("bag of words", "bag of 3-grams", "LSTM", "Transformer")
PARTS = {
    "bag": Part("The bag of words answers the same to both sentences of a pair.", theorem=True),
    **{name: Part(f"{name}: more accurate than the bag of words.", "accuracy") for name in NAMES[1:]},
}


def sentences() -> list[str]:
    """For each pair of verbs the sentence of one who liked it, and of one who did not."""
    return [
        line
        for feel, meet in product(FEEL, MEET)
        for line in (f"i {feel} it i do not {meet} all of it", f"i do not {feel} it i {meet} all of it")
    ]


KNOWN, NUMBERS = numbered([line.split() for line in sentences()], 1000)
SOURCE, TARGET = torch.tensor(NUMBERS), torch.tensor([1, 0] * (len(NUMBERS) // 2))


def labelled(rows: np.ndarray) -> Labels:
    """These sentences."""
    return Labels(SOURCE[rows], torch.ones(len(rows), SOURCE.shape[1], dtype=torch.bool), TARGET[rows])


def encoder(name: str) -> Encoder:
    """The reader under test; all are read by their mean."""
    if name == "bag of words":
        return BagEncoder(WIDTH)
    if name == "bag of 3-grams":
        return NgramEncoder(WIDTH, length=3, size=WIDTH)
    if name == "LSTM":
        return RecurrentEncoder(WIDTH, sizes=(WIDTH,))
    return TransformerEncoder(WIDTH, size=WIDTH, num_layers=1, num_heads=2, dropout=0.0)


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Accuracy on unseen pairs, and how far the bag's answers to a pair are apart."""
    found = {}
    for name in NAMES:
        chance = plant(seed)
        rows = 2 * chance.permutation(len(NUMBERS) // 2)[:, None] + [0, 1]
        train, test = rows[:96].ravel(), rows[96:].ravel()
        read = encoder(name)
        model = Labeller(Tokens(len(KNOWN) + 1, WIDTH), read, Categorical(read.size, 2), pool=Mean(read.size))
        learn(model, lambda: labelled(chance.choice(train, 32)), 5 if quick else 150)
        with torch.no_grad():
            said = model(*labelled(test)[:2])[:, 0]
        found[name] = float((said.argmax(-1) == TARGET[test]).double().mean())
        if name == "bag of words":
            found["apart"] = float((said[::2] - said[1::2]).abs().max())
    return found


def main() -> None:
    """Train, judge, draw."""
    study = begin(__doc__, PARTS)
    found = study.repeat(once)
    study.check("bag", found["apart"].max(), 1e-5)
    for name in NAMES[1:]:
        study.compare(name, found[name], found["bag of words"])
    figure, (axes,) = picture()
    points(axes, {name: found[name] for name in NAMES})
    axes.set(ylabel="accuracy on unseen pairs of verbs", ylim=(0, 1.04))
    level(axes, 0.5, "chance")
    study.finish(figure)


if __name__ == "__main__":
    main()
