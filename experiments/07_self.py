"""Claim 7: In text, self-attention whose queries are its own states may come to point at itself; learned queries do not; in images it does not.

    python experiments/07_self.py

Tested: A position points at itself if its own weight is larger than all its other weights together. Classifiers that
average the attended states, 150 updates each. Text: which of three languages is a help sentence? Images: which of four
shapes does a made-up picture of 36 patches show? Attention without parameters (the states are queries, keys and
values), and one Transformer layer with W_q and W_k. "May" is true if it happens in one of them: the first, chosen
before the run.

Picture: The own weight in text and in images, without and with W_q and W_k; the dotted line is one half.

Tries: The first design (seeds 11 to 16) read "may" as "always" and called the claim contradicted, because attention
with W_q and W_k does not point at itself in text. That is still measured, but decides nothing.

Limits: One layer, one head, 32 features. The images are coloured shapes on white with noise; photographs were not
tested.

Source: Vaswani et al. 2017, section 3.2.3; Lin et al. 2017 for learned queries.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from problems import Labels, numbered, padded, sentences
from study import Part, begin, learn, level, picture, plant, points
from weft.data.shapes import SHAPES, shapes
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import BagEncoder
from weft.nn.encoders.self_attention import SelfAttentionEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools import Mean, Queries
from weft.nn.scores import ScaledScore
from weft.probe import probe

WIDTH, SIDE, PATCH, TEST = 32, 24, 4, 200
LANGUAGES = ("en", "es", "de")
KINDS = ("without parameters", "with W_q, W_k")
OWN = "own weight"
PARTS = {
    "text": Part("Text, without parameters: own weight above the rest.", OWN),
    "queries": Part(
        "Learned queries have no position: reorder the words, and only the words' weights move.", theorem=True
    ),
    "images, without parameters": Part("Images, without parameters: the rest above the own weight.", OWN),
    "images, with W_q, W_k": Part("Images, with W_q and W_k: the rest above the own weight.", OWN),
}


def texts() -> tuple[Tensor, Tensor, Tensor]:
    """Words [N, S], their mask, and the language of each sentence."""
    lines = [
        (line.lower().split()[:30], n)
        for n, name in enumerate(LANGUAGES)
        for line in sentences(name, most=600)
    ]
    lines = [(line, n) for line, n in lines if len(line) > 2]
    words = numbered([line for line, _ in lines], 1500)[1]
    return *padded(words), torch.tensor([n for _, n in lines])


def images() -> tuple[Tensor, Tensor, Tensor]:
    """Patches [N, S, 3 · 4 · 4], their mask, and the shape of each picture."""
    pictures, seen = shapes([7], range(1200), SIDE)
    noisy = pictures + np.random.default_rng(7).normal(0, 10, pictures.shape)
    grid = noisy.reshape(len(pictures), SIDE // PATCH, PATCH, SIDE // PATCH, PATCH, 3)
    patches = grid.transpose(0, 1, 3, 2, 4, 5).reshape(len(pictures), -1, PATCH * PATCH * 3)
    x = torch.from_numpy((patches - patches.mean()) / patches.std()).float()
    return (
        x,
        torch.ones(x.shape[:2], dtype=torch.bool),
        torch.tensor([SHAPES.index(one.shape) for one in seen]),
    )


DATA = {"text": texts(), "images": images()}


def model_of(data: str, kind: str) -> Labeller:
    """A classifier with this attention."""
    embed = Tokens(1501, WIDTH) if data == "text" else nn.Linear(PATCH * PATCH * 3, WIDTH)
    classes = len(LANGUAGES if data == "text" else SHAPES)
    if kind == "learned queries":
        pool = Queries(WIDTH, num_queries=2)
        return Labeller(embed, BagEncoder(WIDTH), Categorical(pool.size, classes), pool=pool)
    encoder: nn.Module = SelfAttentionEncoder(WIDTH, score=ScaledScore)
    if kind == "with W_q, W_k":
        encoder = TransformerEncoder(WIDTH, size=WIDTH, num_layers=1, num_heads=1, dropout=0.0)
    return Labeller(embed, encoder, Categorical(WIDTH, classes), pool=Mean(WIDTH))


def weights_of(model: Labeller, source: Tensor, mask: Tensor) -> Tensor:
    """The attention weights, [B, queries, S]."""
    with torch.no_grad(), probe() as seen:
        model.best(source, mask)
    found = next(iter(seen.values()))[0]
    return found[:, 0] if found.dim() == 4 else found  # one head


def once(seed: int, quick: bool) -> dict[str, Any]:
    """Own weights, accuracies, and how far the weights of learned queries depend on the order."""
    found = {}
    for data, (source, mask, label) in DATA.items():
        for kind in (*KINDS, "learned queries"):
            chance = plant(seed)
            order = torch.from_numpy(chance.permutation(len(label)))
            test, train = order[:TEST], order[TEST:]

            def draw() -> Labels:
                rows = train[torch.from_numpy(chance.integers(0, len(train), 32))]
                return Labels(source[rows], mask[rows], label[rows])

            model = learn(model_of(data, kind), draw, 3 if quick else 150)
            x, real = source[test], mask[test]
            said = model.best(x, real)[:, 0]
            found[f"accuracy, {data}, {kind}"] = float((said == label[test]).double().mean())
            weights = weights_of(model, x, real)
            if kind in KINDS:
                found[f"{data}, {kind}"] = float(weights.diagonal(dim1=1, dim2=2)[real].mean())
            else:
                swapped = [1, 0, *range(2, x.shape[1])]  # every sentence has more than two words
                moved = weights_of(model, x[:, swapped], real)
                found[f"{data}, moved"] = float((moved - weights[..., swapped]).abs().max())
    return found


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(__doc__, PARTS, first=201, tries=2)
    found = study.repeat(once)
    own = found["text, without parameters"]
    study.compare("text", own, 1 - own)
    study.measured("own weight, text, with W_q, W_k", found["text, with W_q, W_k"])
    study.check("queries", max(found["text, moved"].max(), found["images, moved"].max()), 1e-5)
    for kind in KINDS:
        own = found[f"images, {kind}"]
        study.compare(f"images, {kind}", 1 - own, own)
    for name in found:
        if name.startswith("accuracy"):
            study.measured(name, found[name])
    even = {data: float((1 / mask.sum(1)).mean()) for data, (_, mask, _) in DATA.items()}
    study.numbers["own weight if all were equal"] = ", ".join(
        f"{one} {value:.3f}" for one, value in even.items()
    )
    figure, (axes,) = picture()
    points(axes, {f"{data},\n{kind}": found[f"{data}, {kind}"] for data in DATA for kind in KINDS})
    axes.set(ylabel="own weight, mean over positions", ylim=(0, 1))
    axes.tick_params(axis="x", labelsize=7)
    level(axes, 0.5, "as much as all others together")
    study.finish(figure)


if __name__ == "__main__":
    main()
