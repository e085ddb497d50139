"""How much each word of a text weighed in a classifier's decision.

Read next: ../../figures/coloured.py, which draws it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from weft.models import Labeller
from weft.probe import probe
from weft.tasks.classify.reader import BagItems, LabelDecision, LabelReader
from weft.text.vocabulary import EOS, SOS, Word


class Explanation(NamedTuple):
    """The weights of the words of a text."""

    words: list[str]
    weights: np.ndarray  # [words], their sum is 1
    decision: LabelDecision
    shown: str  # which weights these are


def explain(model: Labeller, reader: LabelReader, text: str) -> Explanation:
    """Decide on a text, and weigh its words.

    The weights are the attention of a pool with learned queries (the mean over the queries). For any other
    model they are the share |dL/dx_j . x_j| of each position j, where L is the log-probability of the class
    and x its embedding.
    """
    rows = reader.encode([text])
    device = next(model.parameters()).device
    source, mask = reader.source(rows, [text])
    with torch.enable_grad(), probe() as seen:
        x = model.embed(source.to(device)).detach().requires_grad_()
        memory = model.encoder(x, mask.to(device))
        assert model.pool is not None
        logp = model.head(model.pool(memory)[:, None])[0, 0]
        (slope,) = torch.autograd.grad(logp.max(), x)
    probs = logp.detach().exp().float().cpu().numpy()
    attention = [each for each in seen["attention"] if each.shape[2] == mask.shape[1]]
    if attention:
        weights, shown = attention[-1][0].mean(0), f"attention, mean of {attention[-1].shape[1]} queries"
    else:
        weights, shown = (slope * x)[0].sum(-1).abs(), "gradient times embedding"
    positions = weights.detach().float().cpu().numpy().astype(np.float64)
    found = reader.vocabulary.words(rows[0], text)
    if reader.items is not None:
        positions = _of_tokens(reader.items, reader.counted(rows[0], text), rows[0], found, positions)
    sums = np.array([positions[word.positions].sum() for word in found])
    shares = sums / max(float(sums.sum()), 1e-12)
    return Explanation([word.text for word in found], shares, reader.decide(probs), shown)


def _of_tokens(
    items: BagItems,
    counted: Mapping[int, int],
    tokens: Sequence[int],
    words: Sequence[Word],
    weights: np.ndarray,
) -> np.ndarray:
    """Split the weight of each item of a bag into equal parts for its tokens.

    The weight of a letter n-gram goes to the tokens of the words that contain it.
    """
    share = np.zeros(max(1, len(tokens)))
    weight = {number: each / counted[number] for number, each in zip(counted, weights, strict=False)}
    padded = [SOS, *tokens, EOS] if items.bag.edges else list(tokens)
    first = int(items.bag.edges)  # place of the first token
    for size in range(1, items.bag.ngrams + 1):
        for at in range(len(padded) - size + 1):
            number = items.number(tuple(padded[at : at + size]))
            begin, end = max(0, at - first), min(len(tokens), at + size - first)
            share[begin:end] += weight.get(number, 0.0) / max(1, end - begin)
    for word in words:
        whole = sum(weight.get(number, 0.0) for number in items.of_word(word.text))
        share[word.positions] += whole / len(word.positions)
    return share
