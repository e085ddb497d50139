"""Find the weights of a linear model on all examples at once: no learning rate, no epochs, one penalty.

    min over W, b:   Σ_n loss(W x_n + b, y_n)  +  penalty / 2 · ‖W‖²

The loss is that of the head, which is convex here, so that L-BFGS finds the only minimum. The penalty is
chosen on validation examples, from strong to weak, each beginning at the weights of the one before.
Read next: ../classify/model.py, `Bag`; ../tag/features.py, words with features; ../../nn/embed/grams.py, the
table that keeps W.
"""

import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.masks import from_lengths
from weft.models import Labeller
from weft.nn.embed.grams import FeatureTable, GramTable

PENALTIES = tuple(4.0**power for power in range(3, -7, -1))
"""Those tried if the recipe names none, the strongest first."""

WORSE = 2
"""Weaker penalties are not tried after so many in a row that were no better."""

STEPS = 300
"""Maximum steps of L-BFGS for one penalty."""

HISTORY = 10
"""Steps that L-BFGS remembers, each as large as the weights twice."""

TOLERANCE = 1e-5
"""Largest derivative of the mean loss at a minimum."""


class Design(NamedTuple):
    """Texts, or words, as a linear model reads them."""

    items: Tensor  # [N, V] sparse: the weight of each item in each text
    target: Tensor  # [N] or [N, C], as the head reads it
    sentences: Tensor | None = None  # [B, T] bool, the words of each sentence, if the items are of words

    @classmethod
    def of(
        cls, numbers: Sequence[Sequence[int]], weights: Sequence[np.ndarray], target: Tensor, num_items: int
    ) -> "Design":
        """From the numbers and the weights of the items of each text."""
        ends = np.cumsum([0, *map(len, numbers)])
        columns = np.concatenate([np.array(row, dtype=np.int64) for row in numbers])
        values = np.concatenate(weights).astype(np.float64)
        shape = len(numbers), num_items
        rows, places, weighed = (torch.from_numpy(one) for one in (ends, columns, values))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state", UserWarning)
            items = torch.sparse_csr_tensor(rows, places, weighed, shape, check_invariants=True)
        return cls(items, target)

    @classmethod
    def of_words(
        cls, numbers: Sequence[Sequence[int]], lengths: Sequence[int], target: Tensor, num_items: int
    ) -> "Design":
        """From the items of each word, sentence after sentence, and the lengths of the sentences."""
        found = cls.of(numbers, [np.ones(len(row)) for row in numbers], target, num_items)
        return found._replace(sentences=from_lengths(torch.tensor(lengths), max(lengths)))


class Solution(NamedTuple):
    """The penalty of the weights that were found."""

    penalty: float
    tried: dict[float, float]  # the mean loss of the validation texts for each penalty; empty if one is given

    def __str__(self) -> str:
        chosen = f"penalty {self.penalty:g}"
        return f"{chosen}, the best of {len(self.tried)} on the validation texts" if self.tried else chosen


def solve(
    model: Labeller,
    train: Design,
    valid: Design,
    penalty: float | None = None,
    penalties: Sequence[float] = PENALTIES,
) -> Solution:
    """Fill a linear model with the weights that minimise the loss of the training texts and the penalty.

    Args:
        model: a GramTable or a FeatureTable, and a head; the bias of the head has no penalty.
        valid: the texts that choose the penalty if none is given.
        penalties: those to choose from, the strongest first.

    Source: Nocedal 1980 (L-BFGS); Fan et al. 2008, "LIBLINEAR", whose C is 1 / penalty.
    """
    problem = _Problem(model, train)
    if penalty is not None:
        problem.minimise(penalty)
        problem.keep()
        return Solution(penalty, {})
    losses = dict[float, float]()
    for one in penalties:
        problem.minimise(one)
        losses[one] = problem.loss(valid)
        best = min(losses, key=losses.__getitem__)
        if best == one:
            problem.keep()
        elif list(losses).index(best) + WORSE < len(losses):
            break
    return Solution(best, losses)


class _Problem:
    """The weights of a linear model in float64, and the loss of its training texts."""

    def __init__(self, model: Labeller, train: Design) -> None:
        assert isinstance(model.embed, GramTable | FeatureTable)
        self.table, self.model_head = model.embed, model.head
        self.head = deepcopy(model.head).double().train()
        self.learnt = {name: one for name, one in self.head.named_parameters() if one.requires_grad}
        ratios = self.table.ratios
        self.ratios = 1.0 if ratios is None else self.table.get_buffer("ratios").double()
        self.train = train
        self.transposed = train.items.to_sparse_coo().t().coalesce().to_sparse_csr()
        whole = self.table.weight.detach().double()
        self.places: Tensor | None = None  # in W of the weights that are learnt; None for all
        if (
            train.sentences is not None
        ):  # of words those of features and tags that occur together, a tenth of all
            together = self.transposed @ F.one_hot(train.target, whole.shape[1]).double()
            self.places = together.flatten().nonzero()[:, 0]
            whole = whole.flatten()[self.places]
        self.weight = whole.requires_grad_()

    def minimise(self, penalty: float) -> None:
        """Go from the present weights to those with the lowest loss."""
        count = len(self.train.target)
        optimiser = torch.optim.LBFGS(
            [self.weight, *self.learnt.values()],
            max_iter=STEPS,
            history_size=HISTORY,
            tolerance_grad=TOLERANCE,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            sums = self._sums(self.train).requires_grad_()
            with torch.enable_grad():
                loss = self._loss(sums, self.train) / count
            of_sums, *gradients = torch.autograd.grad(loss, [sums, *self.learnt.values()])
            slope = (self.transposed @ of_sums) * self.ratios
            self.weight.grad = slope if self.places is None else slope.flatten()[self.places]
            for parameter, gradient in zip(self.learnt.values(), gradients, strict=True):
                parameter.grad = gradient
            total = loss.detach()
            penalised = [one for name, one in self.learnt.items() if name != "bias"]
            for one in (self.weight, *penalised):
                assert one.grad is not None
                one.grad += one.detach() * (penalty / count)
                total += one.detach().square().sum() * (penalty / count / 2)
            return total

        optimiser.step(closure)

    def loss(self, texts: Design) -> float:
        """The mean loss of other texts."""
        self.head.eval()
        with torch.no_grad():
            found = self._loss(self._sums(texts), texts) / len(texts.target)
        self.head.train()
        return float(found)

    def keep(self) -> None:
        """Copy the weights into the model."""
        with torch.no_grad():
            self.table.weight.copy_(self._weights())
            for name, found in self.learnt.items():
                self.model_head.get_parameter(name).copy_(found)

    def _sums(self, texts: Design) -> Tensor:
        with torch.no_grad():
            return texts.items @ (self._weights() * self.ratios)

    def _weights(self) -> Tensor:
        """W [V, C]."""
        if self.places is None:
            return self.weight
        whole = self.weight.new_zeros(self.table.weight.shape)
        whole.view(-1)[self.places] = self.weight
        return whole

    def _loss(self, sums: Tensor, texts: Design) -> Tensor:
        mask = texts.sentences
        if mask is None:
            mask = torch.ones(len(sums), 1, dtype=torch.bool)
            return self.head.loss(sums[:, None], texts.target[:, None], mask).total
        scores, target = sums.new_zeros(*mask.shape, sums.shape[1]), texts.target.new_zeros(mask.shape)
        scores[mask], target[mask] = sums, texts.target
        return self.head.loss(scores, target, mask).total
