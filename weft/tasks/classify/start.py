"""The first weights of a classifier: given vectors, naive Bayes, or random numbers.

Read next: ready.py; ../../metrics/naive_bayes.py.
"""

from collections.abc import Sequence

import numpy as np
import torch

from weft.data.vectors import read_vectors
from weft.metrics.naive_bayes import NaiveBayes
from weft.models import Predictor
from weft.nn.embed.contextual import InContext
from weft.nn.embed.grams import GramTable
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.categorical import Categorical
from weft.tasks.classify.model import LabelModel
from weft.tasks.classify.reader import Reader


def begin(
    model: Predictor,
    model_config: LabelModel,
    reader: Reader,
    rows: Sequence[Sequence[int]],
    texts: Sequence[str],
    labels: Sequence[str],
) -> None:
    """Fill a new model, in place and without gradients.

    Args:
        model: as `model_config` built it.
        model_config: says whether there is a bag, and which vectors are given.
        reader: of the run.
        rows: the training texts, encoded.
        texts, labels: the same texts as they are written, and their classes.
    """
    table = model.embed.words if isinstance(model.embed, InContext) else model.embed
    bag, vectors = model_config.bag, model_config.embedding.vectors
    if isinstance(table, GramTable):
        if bag is None or not bag.naive_bayes:
            return
        bags = [reader.counted(row, text) for row, text in zip(rows, texts, strict=True)]
        bayes = NaiveBayes(bags, labels, alpha=bag.alpha)
        logp = np.zeros((reader.num_items, len(bayes.classes)))
        logp[[int(str(number)) for number in bayes.items]] = bayes.logp
        table.begin(torch.from_numpy(logp).float())
        assert isinstance(model.head, Categorical)
        model.head.bias.copy_(torch.from_numpy(bayes.prior))
    elif isinstance(table, Tokens) and vectors is not None:
        pieces = reader.vocabulary.pieces(range(len(reader.vocabulary)))
        names = [piece.removeprefix("▁") for piece in pieces]
        found, size = read_vectors(vectors, set(names))
        for number, name in enumerate(names):
            if name in found:
                table.table.weight[number] = torch.from_numpy(found[name]) / size**0.5
