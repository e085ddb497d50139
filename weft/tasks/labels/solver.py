"""Find the weights of a linear model on all examples at once: no learning rate, no epochs, one penalty.

    min over W, b:   Σ_n loss(W x_n + b, y_n)  +  penalty / 2 · ‖W‖²

The loss is that of the head, which is convex here, so that L-BFGS finds the only minimum. There W is a sum of
examples, Σ_n x_n a_nᵀ, so L-BFGS keeps the few a_n instead of a weight for each of very many items; a step
reads the examples twice, whatever the line search tries. The penalty is chosen on validation examples, from
strong to weak, each beginning at the weights of the one before.

With a vector e_i of some items, an example has its mean vector Σ_i x_i e_i beside its items, with weights U
of its own and the same penalty. What is kept is W + E U, a weight for each item: the model reads no vectors.
Read next: ../classify/model.py, `Bag`; ../tag/features.py, words with features; ../../nn/embed/grams.py, the
table that keeps W.
"""

import warnings
from collections import deque
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from weft.data.batching import length_groups
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
"""Steps that L-BFGS remembers."""

TOLERANCE = 1e-4
"""Length of the gradient at a minimum, as a share of that without weights."""

FLAT = 0.3
"""A line search ends where the slope is at most this share of that where it began."""

TOGETHER = 8192
"""Maximum positions of sentences whose loss is computed together."""

TRIES = 20
"""Maximum lengths that a line search tries."""


class Design(NamedTuple):
    """Texts, or words, as a linear model reads them."""

    items: Tensor  # [N, V] sparse: the weight of each item in each text
    target: Tensor  # [N] or [N, C], as the head reads it
    sentences: Sequence[Tensor] = ()  # of words: [B, T] bool, those of sentences of similar length
    vectors: tuple[Tensor, Tensor] | None = None  # [K] items that have a vector, and these [K, D]

    @classmethod
    def of(
        cls, numbers: Sequence[Sequence[int]], weights: Sequence[np.ndarray], target: Tensor, num_items: int
    ) -> "Design":
        """From the numbers and the weights of the items of each text."""
        ends = np.cumsum([0, *map(len, numbers)])
        columns = np.concatenate([np.array(row, dtype=np.int64) for row in numbers])
        values = np.concatenate(weights).astype(np.float32)
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
        """From the items of each word, sentence after sentence, the shortest first, and their lengths."""
        found = cls.of(numbers, [np.ones(len(row)) for row in numbers], target, num_items)
        groups = [torch.tensor(lengths)[group] for group in length_groups(lengths, TOGETHER)]
        return found._replace(sentences=[from_lengths(one, int(one.max())) for one in groups])


class Solution(NamedTuple):
    """The penalty of the weights that were found, and the mean loss of the validation texts with them."""

    penalty: float
    loss: float
    tried: dict[float, float]  # that loss for each penalty; empty if one is given

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

    The bias of the head has no penalty; the texts `valid` choose the penalty if none is given.

    Source: Nocedal 1980 (L-BFGS); Kimeldorf & Wahba 1971 (W is a sum of texts); Fan et al. 2008, "LIBLINEAR",
        whose C is 1 / penalty.
    """
    problem = _Problem(model, train)
    if penalty is not None:
        problem.minimise(penalty)
        problem.keep()
        return Solution(penalty, problem.loss(valid), {})
    losses = dict[float, float]()
    for one in penalties:
        problem.minimise(one)
        losses[one] = problem.loss(valid)
        best = min(losses, key=losses.__getitem__)
        if best == one:
            problem.keep()
        elif list(losses).index(best) + WORSE < len(losses):
            break
    return Solution(best, losses[best], losses)


class _Point(NamedTuple):
    """Weights W = Σ_n x_n a_nᵀ and the parameters of the head, or a direction of them."""

    shares: Tensor  # [N, C] a
    sums: Tensor  # [N, C] W x
    own: Tensor  # [P] of the head

    def plus(self, other: "_Point", times: float) -> "_Point":
        """This and a multiple of another."""
        return _Point(*(one.add(more, alpha=times) for one, more in zip(self, other, strict=True)))

    def times(self, factor: float) -> "_Point":
        """A multiple."""
        return _Point(*(one * factor for one in self))

    def dot(self, other: "_Point") -> float:
        """The inner product of both, without computing W."""
        return float((self.shares * other.sums).sum() + (self.own * other.own).sum())


class _Step(NamedTuple):
    """A point, with the loss and its derivatives by the sums and the head; the penalty is not among them."""

    at: _Point
    loss: float
    of_sums: Tensor
    of_own: Tensor


class _Problem:
    """The loss of the training examples, and where the search stands."""

    def __init__(self, model: Labeller, train: Design) -> None:
        assert isinstance(model.embed, GramTable | FeatureTable)
        self.table, self.model_head = model.embed, model.head
        self.head = deepcopy(model.head).double().train()
        self.learnt = {name: one for name, one in self.head.named_parameters() if one.requires_grad}
        penalised = [torch.full((one.numel(),), float(name != "bias")) for name, one in self.learnt.items()]
        self.penalised = torch.cat(penalised).double()  # [P]
        ratios = self.table.ratios
        self.ratios = 1.0 if ratios is None else self.table.get_buffer("ratios").float()
        self.train = train
        items = train.items.to_sparse_coo()
        self.transposed = items.t().coalesce().to_sparse_csr()
        if train.vectors is not None:
            self.places, vectors = train.vectors
            means = items.index_select(1, self.places) @ vectors  # [N, D]
            length = means.square().sum(1).mean().sqrt().clamp_min(1e-12)  # 0 if none occurs
            self.vectors = vectors / length  # so that the mean vectors have about length 1, as words have
        none = torch.zeros(len(train.target), self.table.size, dtype=torch.float64)
        own = parameters_to_vector(self.learnt.values()).detach().clone()
        self.now = self._step(_Point(none, none, own))
        first = self._gradient(0.0)
        self.least = TOLERANCE * first.dot(first) ** 0.5

    def minimise(self, penalty: float) -> None:
        """Go from the present weights to those with the lowest loss."""
        past = deque[tuple[_Point, _Point]](maxlen=HISTORY)
        gradient = self._gradient(penalty)
        for _ in range(STEPS):
            if gradient.dot(gradient) ** 0.5 <= self.least:
                return
            towards = _direction(gradient, past)
            length = self._search(towards, gradient.dot(towards), penalty)
            if not length:
                return
            before, gradient = gradient, self._gradient(penalty)
            past.append((towards.times(length), gradient.plus(before, -1.0)))

    def loss(self, texts: Design) -> float:
        """The mean loss of other texts."""
        self.head.eval()
        with torch.no_grad():
            self._set(self.now.at.own)
            sums = (texts.items @ (self._weight(self.now.at.shares) * self.ratios)).double()
            found = self._loss(sums, texts) / len(texts.target)
        self.head.train()
        return float(found)

    def keep(self) -> None:
        """Copy the weights into the model."""
        self._set(self.now.at.own)
        with torch.no_grad():
            self.table.weight.copy_(self._weight(self.now.at.shares))
            for name, found in self.learnt.items():
                self.model_head.get_parameter(name).copy_(found)

    def _set(self, own: Tensor) -> None:
        with torch.no_grad():
            vector_to_parameters(own, self.learnt.values())

    def _weight(self, shares: Tensor) -> Tensor:
        weight = (self.transposed @ shares.float()) * self.ratios
        if self.train.vectors is not None:  # W + E U, with U = Eᵀ W
            weight[self.places] += self.vectors @ (self.vectors.T @ weight[self.places])
        return weight

    def _gradient(self, penalty: float) -> _Point:
        shares = self.now.of_sums.add(self.now.at.shares, alpha=penalty)
        sums = self.train.items @ (self._weight(shares) * self.ratios)
        own = self.now.of_own + penalty * self.penalised * self.now.at.own
        return _Point(shares, sums.double(), own)

    def _step(self, at: _Point) -> _Step:
        sums = at.sums.detach().requires_grad_()
        self._set(at.own)
        with torch.enable_grad():
            loss = self._loss(sums, self.train)
        of_sums, *of_own = torch.autograd.grad(loss, [sums, *self.learnt.values()])
        return _Step(at, float(loss.detach()), of_sums, parameters_to_vector(of_own))

    def _search(self, towards: _Point, slope: float, penalty: float) -> float:
        """Go along a direction to where the loss is nearly flat; how far in its lengths, 0 for nowhere."""
        begin = self.now
        own = self.penalised * towards.own
        linear = penalty * float((towards.shares * begin.at.sums).sum() + (own * begin.at.own).sum())
        square = penalty * float((towards.shares * towards.sums).sum() + (own * towards.own).sum())
        low, low_slope, high, high_slope, length = 0.0, slope, float("inf"), 0.0, 1.0
        for _ in range(TRIES):
            there = self._step(begin.at.plus(towards, length))
            risen = there.loss - begin.loss + length * linear + length**2 / 2 * square
            here = float((there.of_sums * towards.sums).sum() + (there.of_own * towards.own).sum())
            here += linear + length * square
            if abs(here) <= FLAT * abs(slope) and risen < 0:
                self.now = there
                return length
            if here < 0 and risen < 0:
                low, low_slope = length, here
            else:
                high, high_slope = length, here
            if high == float("inf"):
                length *= 3
            else:
                share = low_slope / (low_slope - high_slope) if high_slope > 0 else 0.5
                length = low + (high - low) * min(0.9, max(0.1, share))
        return 0.0

    def _loss(self, sums: Tensor, texts: Design) -> Tensor:
        masks = texts.sentences or [torch.ones(len(sums), 1, dtype=torch.bool)]
        counts, total = [int(mask.sum()) for mask in masks], sums.new_zeros(())
        for mask, own, right in zip(masks, sums.split(counts), texts.target.split(counts), strict=True):
            scores, target = (part.new_zeros(*mask.shape, *part.shape[1:]) for part in (own, right))
            scores[mask], target[mask] = own, right
            total = total + self.head.loss(scores, target, mask).total
        return total


def _direction(gradient: _Point, past: Sequence[tuple[_Point, _Point]]) -> _Point:
    """The gradient times the inverse curvature that the last steps and changes of the gradient show."""
    found, factors = gradient.times(-1.0), list[float]()
    for step, change in reversed(past):
        factors.append(step.dot(found) / step.dot(change))
        found = found.plus(change, -factors[-1])
    if past:
        step, change = past[-1]
        found = found.times(step.dot(change) / change.dot(change))
    for (step, change), factor in zip(past, reversed(factors), strict=True):
        found = found.plus(step, factor - change.dot(found) / step.dot(change))
    return found
