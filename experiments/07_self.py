"""Claim 7: self-attention tends to point at itself in text, learned queries avoid that, vision does not suffer.

    python experiments/07_self.py

Text: sentences of the embedded corpus; which language is it? Attention without parameters over the embeddings,
a Transformer layer (W_q, W_k), and learned queries, all trained. Vision: patches of matplotlib's sample photograph,
standardised, without training. Measured: how often a position's largest weight is its own, and how
much of its weight it keeps.
"""

import matplotlib
import numpy as np
import torch
from matplotlib.image import imread
from torch import Tensor, nn

from problems import Labels, numbered, padded, sentences
from study import Study, bars, begin, learn, picture, plant
from weft.models import Predictor
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.bag import BagEncoder
from weft.nn.encoders.self_attention import SelfAttentionEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pools.mean import Mean
from weft.nn.pools.queries import Queries
from weft.nn.scores.scaled import ScaledDot
from weft.probe import probe

WIDTH, LONGEST, SIDE = 32, 30, 16
LANGUAGES = ("en", "es", "de")


def model_of(kind: str, words: int) -> Predictor:
    """A classifier with this attention."""
    embed = Tokens(words, WIDTH)
    if kind == "learned queries":
        pool = Queries(WIDTH, num_queries=2)
        return Predictor(embed, BagEncoder(WIDTH), Categorical(pool.size, len(LANGUAGES)), pool=pool)
    encoder: nn.Module = SelfAttentionEncoder(WIDTH, score=ScaledDot)
    if kind == "with W_q, W_k":
        encoder = TransformerEncoder(WIDTH, size=WIDTH, num_layers=1, num_heads=1, dropout=0.0)
    return Predictor(embed, encoder, Categorical(WIDTH, len(LANGUAGES)), pool=Mean(WIDTH))


def own(weights: Tensor, mask: Tensor) -> tuple[float, float]:
    """(share of positions whose largest weight is their own, mean own weight) of [B, S, S]."""
    diagonal = weights.diagonal(dim1=1, dim2=2)
    largest = (weights.argmax(-1) == torch.arange(weights.shape[1]))[mask]
    return float(largest.double().mean()), float(diagonal[mask].double().mean())


def seen_weights(model: nn.Module, source: Tensor, mask: Tensor) -> Tensor:
    """What a probe sees of self-attention, [B, S, S]."""
    with torch.no_grad(), probe() as seen:
        model.memory(source, mask)
    found = next(iter(seen.values()))[0]
    return found[:, 0] if found.dim() == 4 else found  # one head


def photograph(study: Study) -> tuple[float, float]:
    """The same of patches, attention without parameters."""
    folder = matplotlib.get_data_path()
    pixels = imread(f"{folder}/sample_data/grace_hopper.jpg").astype(np.float32) / 255
    high, wide = (size // SIDE for size in pixels.shape[:2])
    patches = pixels[: high * SIDE, : wide * SIDE].reshape(high, SIDE, wide, SIDE, 3).transpose(0, 2, 1, 3, 4)
    x = torch.from_numpy(np.ascontiguousarray(patches)).reshape(1, high * wide, -1)
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
    x = x @ torch.linalg.svd(x[0], full_matrices=False)[2][:WIDTH].T  # as many features as a word has
    x = x / x.square().mean().sqrt()
    encoder, mask = SelfAttentionEncoder(WIDTH, score=ScaledDot), torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad(), probe() as seen:
        encoder(x, mask)
    return own(seen["attention"][0], mask)


def main() -> None:
    """Train, measure, judge, draw."""
    study = begin(
        7,
        "Self-attention whose query comes from the states it looks at tends to point at itself in text; learned queries avoid that; vision does not suffer from it.",
    )
    texts = [[line.lower().split() for line in sentences(language, most=600)] for language in LANGUAGES]
    lines = [line[:LONGEST] for text in texts for line in text if len(line) > 2]
    known, numbers = numbered(lines, 1500)
    label = np.concatenate([np.full(sum(len(line) > 2 for line in text), n) for n, text in enumerate(texts)])
    kinds = ("without parameters", "with W_q, W_k", "learned queries")
    self_share: dict[str, list[float]] = {kind: [] for kind in kinds[:2]}
    own_weight: dict[str, list[float]] = {kind: [] for kind in kinds[:2]}
    right: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seed in study.seeds:
        for kind in kinds:
            chance = plant(seed)
            order = chance.permutation(len(numbers))
            test, train = order[:200], order[200:]

            def some(rows: np.ndarray) -> Labels:
                source, mask = padded([numbers[row] for row in rows])
                return Labels(source, mask, torch.from_numpy(label[rows]))

            model = model_of(kind, len(known) + 1)
            learn(
                model,
                lambda chance=chance, train=train: some(chance.choice(train, 32)),
                3 if study.quick else 120,
            )
            batch = some(test)
            with torch.no_grad():
                right[kind].append(float((model.best(*batch[:2])[:, 0] == batch.target).double().mean()))
            if kind in self_share:
                share, weight = own(seen_weights(model, batch.source, batch.source_mask), batch.source_mask)
                self_share[kind].append(share)
                own_weight[kind].append(weight)
    eye = photograph(study)
    shares = {
        kind: study.measured(f"text, {kind}: largest weight is its own", self_share[kind])
        for kind in kinds[:2]
    }
    {kind: study.measured(f"text, {kind}: own weight", own_weight[kind]) for kind in kinds[:2]}
    found = {kind: study.measured(f"text, {kind}: accuracy", right[kind]) for kind in kinds}
    study.measured("photograph, without parameters: largest weight is its own", [eye[0]])
    study.measured("photograph, without parameters: own weight", [eye[1]])
    study.expect(
        "text, without parameters: most positions look at themselves most", shares["without parameters"] > 0.5
    )
    study.expect(
        "text, with W_q and W_k after training: most positions look at themselves most",
        shares["with W_q, W_k"] > 0.5,
    )
    study.expect(
        "learned queries, which have no position of their own, lose at most 0.02 of accuracy",
        found["learned queries"] > max(found.values()) - 0.02,
    )
    study.expect(
        "a photograph's patches look at themselves most in less than half of the cases", eye[0] < 0.5
    )
    figure, (left, axes) = picture(2)
    names = ["text, without\nparameters", "text, with\nW_q, W_k", "photograph,\nwithout parameters"]
    bars(left, names, [*self_share.values(), [eye[0]]])
    left.set(ylabel="largest weight is its own", ylim=(0, 1.02))
    bars(axes, names, [*own_weight.values(), [eye[1]]])
    axes.set(ylabel="own weight")
    for one in (left, axes):
        one.tick_params(axis="x", labelsize=8)
    even = float(np.mean([1 / len(line) for line in lines]))
    study.finish(
        figure,
        "Learned queries stand at no position, so they cannot point at themselves; what was tested is that they lose "
        f"nothing. An even share would be {even:.2f} in the texts, 0.0008 among the photograph's patches (one photograph, "
        "one layer, one head).",
    )


if __name__ == "__main__":
    main()
