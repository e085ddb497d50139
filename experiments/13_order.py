"""Claim 13: self-attention without positions does not know the order of words.

    python experiments/13_order.py

By measure: reorder the input and see whether the outputs are reordered and otherwise the same. By training: of
eleven different letters two are A and B; which came first? Positions, or a mask that hides what comes later, tell.
Source: Vaswani et al. 2017, section 3.5; Haviv et al. 2022 on causal masks.
"""

import numpy as np
import torch
from torch import Tensor, nn

from problems import Labels
from study import Study, bars, begin, learn, picture, plant
from weft.models import Predictor
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss
from weft.nn.pools.mean import Mean

LETTERS, WIDTH = 11, 32


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


def reader(positions: str) -> Predictor:
    """A Transformer encoder whose mean is classified."""
    encoder = TransformerEncoder(
        WIDTH, size=WIDTH, num_layers=1, num_heads=2, positions=positions, dropout=0.0
    )
    return Predictor(Tokens(LETTERS, WIDTH), encoder, Categorical(WIDTH, 2), pool=Mean(WIDTH))


def moved(positions: str, chance: np.random.Generator) -> float:
    """The largest difference between the outputs of a reordered input and the reordered outputs."""
    encoder = reader(positions).encoder.double().eval()
    x = torch.from_numpy(chance.standard_normal((3, LETTERS, WIDTH)))
    order, mask = torch.from_numpy(chance.permutation(LETTERS)), torch.ones(3, LETTERS, dtype=torch.bool)
    with torch.no_grad():
        return float((encoder(x[:, order], mask).states - encoder(x, mask).states[:, order]).abs().max())


def accuracy(study: Study, model: nn.Module, chance: np.random.Generator) -> float:
    """Of fresh examples after training."""
    learn(model, lambda: which_first(chance, 64), 10 if study.quick else 150)
    test = which_first(chance, 100 if study.quick else 2000)
    with torch.no_grad():
        return float((model.best(test.source, test.source_mask)[:, 0] == test.target).double().mean())


def main() -> None:
    """Measure, judge, draw."""
    study = begin(13, "Self-attention without positions does not know the order of words.")
    kinds = ("none", "sinusoidal", "rotary", "relative")
    apart: dict[str, list[float]] = {name: [] for name in kinds}
    right: dict[str, list[float]] = {name: [] for name in ("none", "sinusoidal", "none, causal mask")}
    for seed in study.seeds:
        for name in kinds:
            chance = plant(seed)
            apart[name].append(moved(name, chance))
            if name in right:
                right[name].append(accuracy(study, reader(name), chance))
        right["none, causal mask"].append(accuracy(study, Causal(), plant(seed)))
    for name in kinds:
        study.measured(f"change by reordering, positions {name}", apart[name])
    means = {name: study.measured(f"accuracy, positions {name}", values) for name, values in right.items()}
    study.expect(
        "without positions, reordering the input reorders the output and changes it by less than 1e-10",
        max(apart["none"]) < 1e-10,
    )
    study.expect(
        "with positions of any kind it changes the output", min(min(apart[name]) for name in kinds[1:]) > 1e-3
    )
    study.expect(
        "without positions, which came first stays a guess (accuracy 0.45 to 0.55)",
        0.45 < means["none"] < 0.55,
    )
    study.expect("with sinusoidal positions it is learnt (above 0.9)", means["sinusoidal"] > 0.9)
    figure, (axes,) = picture()
    bars(axes, [name.replace(", ", ",\n") for name in right], list(right.values()))
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.set(ylabel="accuracy: which came first?", ylim=(0, 1.02))
    axes.tick_params(axis="x", labelsize=8)
    study.finish(
        figure, "A causal mask breaks the symmetry: a decoder without positions is not blind to order."
    )


if __name__ == "__main__":
    main()
