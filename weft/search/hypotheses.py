"""What every search returns: token sequences for each source, with log-probabilities and scores.

A score depends on the length of a hypothesis: score = logp / norm(length). A sum of log-probabilities falls
with every token, so that a search by the sum prefers short sentences. `length` counts every generated token,
eos included.

    length:  norm(n) = n^alpha                 alpha = 0: the sum itself; alpha = 1: the mean per token
    gnmt:    norm(n) = ((5 + n) / 6)^alpha     Wu et al. 2016, equation 14, without its coverage term

Both are 1 at n = 1 and grow with n, but (5 + n) / 6 grows more slowly: from n = 10 to n = 20 n^alpha
grows by 2^alpha, gnmt's by (25/15)^alpha, so that the same alpha favours long hypotheses less there.
Read next: beam.py, whose early stopping requires a non-decreasing norm.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from weft.errors import ConfigError
from weft.search.offered import Normalisation

INFINITY = float("inf")


class Hypotheses(NamedTuple):
    """N hypotheses for each of B sources, best first (samples: as drawn).

    A hypothesis that ended contains eos, and its length includes it. One that was cut at max_length has
    no eos. If fewer than N are possible, the missing ones have length 0 and score -inf.

    Example:
        >>> import torch
        >>> tokens, lengths = torch.tensor([[[5, 2]]]), torch.tensor([[2]])  # [B, N, T], [B, N]
        >>> found = Hypotheses(tokens, lengths, torch.tensor([[-0.7]]), torch.tensor([[-0.35]]))
        >>> found.tokens[0, 0, : found.lengths[0, 0]].tolist()  # the best of the first source
        [5, 2]

    `sample` draws N of them for each source; here each of three tokens is as probable:
        >>> from weft.search import sample
        >>> even = lambda token, state: (torch.full((len(token), 3), 1 / 3).log(), state)
        >>> chance = torch.Generator().manual_seed(1)
        >>> drawn = sample(even, None, torch.tensor([0]), eos=2, max_length=5, count=4, generator=chance)
        >>> drawn.logp.shape  # [B, N]
        torch.Size([1, 4])
    """

    tokens: Tensor  # [B, N, T] int64, without sos; eos after the end
    lengths: Tensor  # [B, N] int64
    logp: Tensor  # [B, N] float64, sum of the tokens' log-probabilities in nats
    score: Tensor  # [B, N] float64, logp normalised by length


def best(hypotheses: Hypotheses, count: int = 1) -> Hypotheses:
    """Only the first `count` hypotheses of each source."""
    if hypotheses.lengths.shape[1] <= count:
        return hypotheses
    tokens, lengths, logp, score = (part[:, :count] for part in hypotheses)
    return Hypotheses(tokens[:, :, : int(lengths.max()) if lengths.numel() else 0], lengths, logp, score)


def distinct(hypotheses: Hypotheses, count: int, eos: int) -> Hypotheses:
    """The best `count` different hypotheses of each source: ended ones by score, then cut ones by score."""
    tokens, lengths, _, score = hypotheses
    last = tokens.gather(2, (lengths - 1).clamp(min=0)[..., None]).squeeze(2) if tokens.shape[2] else lengths
    rank = (last != eos).to(torch.uint8).masked_fill(score == -INFINITY, 2)  # ended, cut, absent
    order = score.sort(dim=1, descending=True, stable=True).indices
    order = order.gather(1, rank.gather(1, order).sort(dim=1, stable=True).indices)
    tokens = tokens.gather(1, order[..., None].expand_as(tokens))
    equal = (tokens[:, :, None] == tokens[:, None]).all(3)  # [B, N, N]
    again = equal.tril(-1).any(2) | (rank.gather(1, order) == 2)
    keep = again.to(torch.uint8).sort(dim=1, stable=True).indices[:, :count]
    absent, order = again.gather(1, keep), order.gather(1, keep)
    tokens = tokens.gather(1, keep[..., None].expand(-1, -1, tokens.shape[2]))
    lengths = lengths.gather(1, order).masked_fill(absent, 0)
    longest = int(lengths.max()) if lengths.numel() else 0
    return Hypotheses(
        tokens.masked_fill(absent[..., None], eos)[..., :longest],
        lengths,
        hypotheses.logp.gather(1, order).masked_fill(absent, -INFINITY),
        score.gather(1, order).masked_fill(absent, -INFINITY),
    )


def joined(parts: Sequence[Hypotheses], eos: int) -> Hypotheses:
    """The hypotheses of several batches, concatenated."""
    longest = max(part.tokens.shape[2] for part in parts)
    tokens = [pad(part.tokens, (0, longest - part.tokens.shape[2]), value=eos) for part in parts]
    return Hypotheses(torch.cat(tokens), *(torch.cat(each) for each in list(zip(*parts, strict=True))[1:]))


def to_lists(hypotheses: Hypotheses, eos: int) -> list[list[list[int]]]:
    """Tokens as Python lists, one list of hypotheses per source, without eos and absent hypotheses.

    Example:
        >>> import torch
        >>> tokens = torch.tensor([[[5, 6, 3], [7, 3, 3]]])
        >>> zero = torch.zeros(1, 2)
        >>> to_lists(Hypotheses(tokens, torch.tensor([[3, 2]]), zero, zero), eos=3)
        [[[5, 6], [7]]]
    """
    rows = zip(hypotheses.tokens.tolist(), hypotheses.lengths.tolist(), strict=True)
    return [
        [
            [token for token in tokens[:length] if token != eos]
            for tokens, length in zip(*row, strict=True)
            if length
        ]
        for row in rows
    ]


def norms(longest: int, alpha: float, kind: Normalisation = "length") -> Tensor:
    """norm(n) for n = 0 to `longest`: [longest + 1] float64; norm(0) is set to 1 and not used.

    Powers are Python's own, so a trace replayed without torch is bit-identical.
    """
    if not 0 <= alpha <= 10:
        raise ConfigError(f"length_penalty: expected 0 (none) to 10, got {alpha:g}; 0.6 to 1 is usual")
    if kind not in ("length", "gnmt"):
        raise ConfigError(f"normalisation: expected 'length' or 'gnmt', got {kind!r}")
    lengths = range(1, longest + 1)
    found = [float(n) if kind == "length" else (5 + n) / 6 for n in (1, *lengths)]
    return torch.tensor([base**alpha for base in found], dtype=torch.float64)


def norms_for(limits: Tensor, alpha: float, kind: Normalisation = "length") -> Tensor:
    """`norms` up to the largest of these limits, on their device."""
    return norms(int(limits.max()) if len(limits) else 0, alpha, kind).to(limits.device)


def norm(length: int, alpha: float, kind: Normalisation = "length") -> float:
    """What the log-probability of a hypothesis of this length, in tokens, is divided by."""
    return float(norms(max(length, 1), alpha, kind)[-1])
