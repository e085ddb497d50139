"""Claim 13: Self-attention without positions does not know the order of words.

    python experiments/13_order.py

Tested: Reorder the input of a Transformer encoder and compare its outputs (float64). Then a training: eleven different
letters, two of which are A and B; which came first? With sinusoidal positions, and with a causal mask in place of
positions, which hides what comes later.

Picture: Accuracy without positions, with sinusoidal positions, and with a causal mask.

Limits: The theorem is about full self-attention; with a causal mask a model without positions can learn the order.

Source: Vaswani et al. 2017, section 3.5; Haviv et al. 2022 on causal masks.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from problems import Labels
from study import Part, begin, learn, level, picture, plant, points
from weft.models import Labeller
from weft.nn import Categorical, Loss, Mean, Tokens, TransformerDecoder, TransformerEncoder

LETTERS, WIDTH = 11, 32
KINDS = ("none", "sinusoidal", "none, causal mask")
PARTS = {
    "equivariant": Part(
        "Without positions, reordering the input reorders the outputs and changes none.", theorem=True
    ),
    "sinusoidal": Part(
        "With sinusoidal positions, which came first is learnt better than without.", "accuracy"
    ),
    "causal": Part("With a causal mask, which came first is learnt better than without one.", "accuracy"),
}


class Causal(nn.Module):
    """A masked Transformer without positions, which answers after the last letter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = Tokens(LETTERS, WIDTH)
        self.decoder = TransformerDecoder(
            WIDTH, size=WIDTH, num_layers=2, num_heads=2, positions="none", dropout=0.0
        )
        self.head = Categorical(WIDTH, 2)

    def features(self, source: Tensor) -> Tensor:
        """[B, S] to [B, 1, D]."""
        return self.decoder(self.embed(source), self.decoder.start(None, len(source)))[0][:, -1:]

    def best(self, source: Tensor, mask: Tensor) -> Tensor:
        """The more probable answer, [B, 1]."""
        return self.head.best(self.features(source), mask[:, :1])

    def loss(self, batch: Labels) -> Loss:
        """Cross-entropy."""
        return self.head.loss(self.features(batch.source), batch.target[:, None], batch.source_mask[:, :1])


def which_first(chance: np.random.Generator, rows: int) -> Labels:
    """Letters 0 .. 10 in random order; the label says whether 0 stands before 1."""
    source = chance.permuted(np.tile(np.arange(LETTERS), (rows, 1)), axis=1)
    first = source.argmin(1) < (source == 1).argmax(1)
    mask = torch.ones(rows, LETTERS, dtype=torch.bool)
    return Labels(torch.from_numpy(source), mask, torch.from_numpy(first.astype(np.int64)))


def reader(positions: str) -> Labeller:
    """A Transformer encoder whose mean is classified."""
    encoder = TransformerEncoder(
        WIDTH, size=WIDTH, num_layers=1, num_heads=2, positions=positions, dropout=0.0
    )
    return Labeller(Tokens(LETTERS, WIDTH), encoder, Categorical(WIDTH, 2), pool=Mean(WIDTH))


def moved(chance: np.random.Generator) -> float:
    """The largest difference between the outputs of a reordered input and the reordered outputs."""
    encoder = reader("none").encoder.double().eval()
    x = torch.from_numpy(chance.standard_normal((3, LETTERS, WIDTH)))
    order, mask = torch.from_numpy(chance.permutation(LETTERS)), torch.ones(3, LETTERS, dtype=torch.bool)
    with torch.no_grad():
        return float((encoder(x[:, order], mask).states - encoder(x, mask).states[:, order]).abs().max())


def once(seed: int, quick: bool) -> dict[str, Any]:
    """The theorem's error, and the accuracies after training."""
    found = {"moved": moved(plant(seed))}
    for name in KINDS:
        chance = plant(seed)
        model: nn.Module = Causal() if "causal" in name else reader(name)
        learn(model, lambda: which_first(chance, 64), 10 if quick else 150)
        test = which_first(chance, 2000)
        with torch.no_grad():
            said = model.best(test.source, test.source_mask)[:, 0]
        found[name] = float((said == test.target).double().mean())
    return found


def main() -> None:
    """Measure, judge, draw."""
    study = begin(__doc__, PARTS)
    found = study.repeat(once)
    study.check("equivariant", found["moved"].max(), 1e-10)
    study.compare("sinusoidal", found["sinusoidal"], found["none"])
    study.compare("causal", found["none, causal mask"], found["none"])
    figure, (axes,) = picture()
    points(axes, {name.replace(", ", ",\n"): found[name] for name in KINDS})
    axes.set(ylabel="accuracy: which came first?", ylim=(0, 1.04))
    level(axes, 0.5, "chance")
    study.finish(figure)


if __name__ == "__main__":
    main()
