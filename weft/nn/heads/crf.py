"""A linear-chain conditional random field, which scores tags jointly with their neighbours.

Read next: categorical.py, which scores each position separately.
"""

from typing import Any

import torch
from torch import Tensor, nn

from weft.masks import or_all
from weft.nn.border import check_classes, check_tensor, weight_of
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Linear


class Crf(Head):
    """p(y | x) = exp(s(x, y)) / sum_y' exp(s(x, y')), summed over all C^T tag sequences.

    s(x, y) = b_{y_1} + sum_t P_{t, y_t} + sum_t A_{y_t, y_t+1} + e_{y_T} with P = W h + c; b and e are the
    transitions from the start and to the end. The sum is computed by the forward algorithm, the best sequence
    by the Viterbi algorithm.

    Args:
        in_size: D, features of h.
        num_classes: C.

    Source: Lafferty et al. 2001; Lample et al. 2016, section 2.2, eq. 1 and 2.

    Example:
        >>> import torch
        >>> head = Crf(5, num_classes=3)
        >>> head.best(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0).shape
        torch.Size([2, 7])
    """

    def __init__(self, in_size: int, num_classes: int) -> None:
        super().__init__(in_size=in_size)
        self.emit: nn.Module = Linear(in_size, num_classes)
        self.transitions = nn.Parameter(torch.zeros(num_classes, num_classes))  # [from, to]
        self.begin = nn.Parameter(torch.zeros(num_classes))
        self.end = nn.Parameter(torch.zeros(num_classes))

    def check_features(self, h: Tensor) -> None:
        check_tensor("Crf", "h", h, ("..", "steps", self.in_size), weight_of(self))

    def check_targets(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> None:
        super().check_targets(h, target, mask)
        check_classes("Crf", "target", target[mask], len(self.begin), h.device)

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities of each tag at each position, [.., T, C], without padding."""
        flat = h.reshape(-1, *h.shape[-2:])
        mask = torch.ones(flat.shape[:2], dtype=torch.bool, device=h.device)
        return self.marginals(flat, mask).reshape(*h.shape[:-1], -1)

    def marginals(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p(y_t = c | x), [B, T, C], by the forward-backward algorithm."""
        mask = or_all(mask, h)
        scores = self._emissions(h)
        forward = self._forward(scores, mask)
        steps = scores.shape[1]
        last = self.end.to(scores.dtype).expand(len(scores), -1)
        backward = [last]
        for t in range(steps - 2, -1, -1):
            onward = self._onward((scores[:, t + 1] + backward[-1])[:, None, :], to=True)
            backward.append(torch.where(mask[:, t + 1, None], onward, last))
        both = forward + torch.stack(backward[::-1], 1)
        return both.log_softmax(-1)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """-log p(target | x), summed over rows; the count is the number of tags."""
        mask = or_all(mask, target)
        scores = self._emissions(h)
        lengths = mask.sum(1)
        last = (lengths - 1).clamp(min=0)[:, None]
        target = target.masked_fill(~mask, 0)
        emitted = scores.gather(2, target[..., None])[..., 0].masked_fill(~mask, 0.0)
        moved = self.transitions[target[:, :-1], target[:, 1:]].masked_fill(~mask[:, 1:], 0.0)
        ends = self.begin[target[:, 0]] + self.end[target.gather(1, last)[:, 0]]
        own = emitted.sum(1) + moved.sum(1) + ends
        if scores.device.type == "cpu" and not torch.compiler.is_compiling() and bool(mask.any()):
            own = own.masked_fill(lengths == 0, 0.0).sum(dtype=torch.float64)
            whole = _LogSum.apply(scores, mask, self.transitions, self.begin, self.end)
            return Loss((whole - own).to(scores.dtype), mask.sum())
        forward = self._forward(scores, mask)
        final = forward.gather(1, last[..., None].expand(-1, 1, scores.shape[2]))[:, 0]
        cost = (final + self.end.to(final.dtype)).logsumexp(-1) - own
        return Loss(cost.masked_fill(lengths == 0, 0.0).sum(), mask.sum())

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable tag sequence, [B, T], by the Viterbi algorithm; 0 at padding."""
        mask = or_all(mask, h)
        scores = self._emissions(h)
        value = self.begin.to(scores.dtype) + scores[:, 0]
        stay = torch.arange(scores.shape[2], device=h.device).expand_as(value)
        origins = []
        for t in range(1, scores.shape[1]):
            ahead, origin = (value[:, :, None] + self.transitions.to(scores.dtype)).max(1)
            real = mask[:, t, None]
            value = torch.where(real, ahead + scores[:, t], value)
            origins.append(torch.where(real, origin, stay))
        tag = (value + self.end.to(value.dtype)).argmax(-1)
        path = [tag]
        for origin in reversed(origins):
            tag = origin.gather(1, tag[:, None])[:, 0]
            path.append(tag)
        return torch.stack(path[::-1], 1).masked_fill(~mask, 0)

    def _emissions(self, h: Tensor) -> Tensor:
        scores: Tensor = self.emit(h)
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def _forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """log-sum of the scores of all prefixes that end in each tag, [B, T, C]; constant at padding."""
        alpha = [self.begin.to(scores.dtype) + scores[:, 0]]
        for t in range(1, scores.shape[1]):
            ahead = self._onward(alpha[-1][:, :, None], to=False) + scores[:, t]
            alpha.append(torch.where(mask[:, t, None], ahead, alpha[-1]))
        return torch.stack(alpha, 1)

    def _onward(self, scores: Tensor, *, to: bool) -> Tensor:
        return (scores + self.transitions.to(scores.dtype)).logsumexp(2 if to else 1)


class _LogSum(torch.autograd.Function):
    """log sum_y exp(s(x, y)), summed over rows, in float64: the forward-backward algorithm on a CPU.

    Step t computes only the rows that are longer than t, and probabilities that sum to 1 instead of their
    logarithms (Rabiner 1989, section V.A), so that a step is one small product of matrices.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, mask: Tensor, transitions: Tensor, begin: Tensor, end: Tensor
    ) -> Tensor:
        """[B, T, C], [B, T] bool, [C, C], [C] and [C] to a scalar."""
        order = mask.sum(1).argsort(descending=True, stable=True)
        time, row = mask[order].mT.nonzero(as_tuple=True)  # step by step, the longest rows first
        row = order[row]
        sizes = [n for n in mask.sum(0).tolist() if n]
        packed = scores[row, time].double()  # [N, C]
        top, highest = packed.amax(1, keepdim=True), transitions.double().amax()
        emitted = (packed - top).exp_().split(sizes)
        moved = (transitions.double() - highest).exp()
        alphas: list[Tensor] = []
        totals: list[Tensor] = []
        for t, n in enumerate(sizes):
            alpha = (alphas[-1][:n] @ moved if t else begin.double().exp()) * emitted[t]
            totals.append(alpha.sum(1, keepdim=True))
            alphas.append(alpha.div_(totals[-1]))
        ended = [alpha[n:] for alpha, n in zip(alphas, [*sizes[1:], 0], strict=True)]
        final = torch.cat(ended) @ end.double().exp()
        ctx.save_for_backward(scores, row, time, moved, end.double().exp())
        ctx.kept = sizes, emitted, alphas, totals
        steps = highest * (len(row) - sizes[0])
        return top.sum() + steps + sum(one.log().sum() for one in totals) + final.log().sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The expected number of each tag at each position, of each transition, first and last tag."""
        scores, row, time, moved, end = ctx.saved_tensors
        sizes, emitted, alphas, totals = ctx.kept
        onward: list[Tensor] = []  # [n, C] of each step but the first, the last one first
        shares: list[Tensor] = []
        last = torch.zeros_like(end)
        beta = end.new_empty(0, len(end))
        for t in range(len(sizes) - 1, -1, -1):
            if len(beta):
                onward.append(emitted[t + 1] * beta / totals[t + 1])
                beta = onward[-1] @ moved.mT
            over = alphas[t][len(beta) :]  # [.., C] of the rows that end here
            ending = end / (over @ end)[:, None]
            last += (over * ending).sum(0)
            beta = torch.cat([beta, ending])
            shares.append(alphas[t] * beta)
        pairs = torch.zeros_like(moved)
        if onward:
            before = [alpha[:n] for alpha, n in zip(alphas, sizes[1:], strict=False)]
            pairs = torch.cat(before[::-1]).mT @ torch.cat(onward) * moved
        found = torch.zeros_like(scores)
        found[row, time] = (gradient * torch.cat(shares[::-1])).to(scores.dtype)
        return found, None, *(gradient * one for one in (pairs, shares[-1].sum(0), last))
