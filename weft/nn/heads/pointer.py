"""A head that can copy, mixing the vocabulary's distribution with the source words.

Read next: ../decoders/pointer.py; ../../tasks/seq2seq/batch_search.py, which numbers unknown words.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.masks import or_all, positions, summed
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import linear
from weft.probe import exporting, record, watching


class CopySource(NamedTuple):
    """The source symbols, shared by all hypotheses of a source."""

    tokens: Tensor | None  # [B, S] int64; V and above are unknown source words; None if not known
    per_source = True


class PointerFeatures(NamedTuple):
    """N = W B rows of T steps."""

    h: Tensor  # [N, T, D] features for the vocabulary's distribution
    gate: Tensor  # [N, T, 1] logit of p_gen, the probability of generating
    weights: Tensor  # [N, T, S] attention, the copy distribution
    again: Tensor | None  # [N, T, 1] coverage loss; None without coverage
    source: CopySource


class Pointer(Head):
    """p(w) = p_gen p_vocab(w) + (1 - p_gen) sum_{i: w_i = w} a_i over V + S symbols.

    The first V symbols are the vocabulary's, the others the unknown words of a source with S positions;
    unused ones have probability 0. The loss of a target w is -log p(w), plus the decoder's coverage loss in
    training.

    Args:
        in_size: D, features of h.
        num_classes: V.
        smoothing: in training, share ε of the loss for the mean of -log p_vocab over the vocabulary; not
            in the paper.
        tied: see Categorical.

    Source: See, Liu & Manning 2017, eq. 9, 10 and 13.

    Example:
        >>> import torch
        >>> from weft.nn import Pointer
        >>> Pointer(6, 11).words(torch.zeros(2, 3, 6)).shape  # of the vocabulary alone
        torch.Size([2, 3, 11])
    """

    copies = True

    def __init__(
        self, in_size: int, num_classes: int, *, smoothing: float = 0.0, tied: nn.Embedding | None = None
    ) -> None:
        super().__init__(in_size=in_size)
        self.words = Categorical(in_size, num_classes, tied=tied)
        self.smoothing = smoothing
        self.num_classes = num_classes

    def forward(self, h: PointerFeatures) -> Tensor:
        """Log-probabilities [.., V + S] in at least float32; -inf for unused symbols."""
        logp, tokens = self.words(h.h), self._tokens(h)
        size, places = self.num_classes, h.weights.shape[-1]
        copied = torch.zeros(*logp.shape[:-1], size + places, dtype=logp.dtype, device=logp.device)
        copied = copied.scatter_add(-1, tokens.expand(h.weights.shape), h.weights.to(logp.dtype))
        gate = h.gate.to(logp.dtype)
        if watching():
            record("copied", copied * torch.sigmoid(-gate))  # the copied part of each symbol's probability
        from_words = F.pad(logp + F.logsigmoid(gate), (0, places), value=-float("inf"))
        return torch.logaddexp(from_words, copied.log() + F.logsigmoid(-gate))

    def loss(self, h: PointerFeatures, target: Tensor, mask: Tensor | None = None) -> Loss:
        """See Head.loss; coverage loss and smoothing apply in training only."""
        mask = or_all(mask, target)
        features, gate, wanted = (positions(each, mask) for each in (h.h, h.gate, target))
        logits = linear(self.words.project(features), self.words.weight, self.words.bias)
        wide = torch.promote_types(logits.dtype, torch.float32)
        logp = logits.log_softmax(-1, dtype=wide)  # [M, V]
        known = wanted < self.num_classes
        own = logp.gather(1, wanted.masked_fill(~known, 0)[:, None])[:, 0]
        own = own.masked_fill(~known, torch.finfo(wide).min)  # not -inf, whose gradient would be NaN
        same = self._tokens(h) == target[..., None]  # [B, T, S]
        copied = positions(h.weights.to(wide) * same, mask).sum(1).clamp_min(torch.finfo(wide).tiny)
        gate = gate[:, 0].to(wide)
        costs = torch.logaddexp(own + F.logsigmoid(gate), copied.log() + F.logsigmoid(-gate))
        cost = -summed(costs, mask)
        if self.training:
            cost = (1 - self.smoothing) * cost - self.smoothing * summed(logp.mean(1), mask)
            if h.again is not None:
                cost = cost + summed(positions(h.again, mask).to(wide), mask)
        return Loss(cost, mask.sum())

    def best(self, h: PointerFeatures, mask: Tensor | None = None) -> Tensor:
        """The most probable symbol at each position; V and above are copied words."""
        return self.forward(h).argmax(-1)

    @staticmethod
    def _tokens(h: PointerFeatures) -> Tensor:
        """The source symbols of each row, broadcastable to the weights: [N, S] or [N, 1, S]."""
        tokens = h.source.tokens
        assert tokens is not None, "a pointer that copies needs to know what was read"
        times = 1 if exporting() else len(h.weights) // len(tokens)
        rows = tokens.repeat_interleave(times, 0) if times > 1 else tokens
        return rows if h.weights.dim() == 2 else rows[:, None]
