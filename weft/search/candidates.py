"""The best continuations of a beam: the exact top k of W * V sums, for little more than one pass.

Sorting or `topk` over [B, W * V] costs several times as much as reading it. So the vocabulary is
divided into blocks of 64 tokens. One vectorised pass computes each block's maximum; then the best k
blocks of each source are chosen by these maxima, and the best k tokens inside these k blocks. The
result is exact: if a token outside the chosen blocks were among the best k, each of the k chosen
blocks would contain a better token, its maximum.

On the CPU compiled code does the same, bit-identically, in one pass (native/choosing.cpp).

The order is total, so that equal sums do not depend on the batch or on the machine's sort: larger
sum first, then the earlier parent, then the lower token id. Read next: beam.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from weft import native
from weft.native import jobs

BLOCK = 64
"""Tokens per block: near sqrt(V / 2), where both stages cost the same, for V from 4,000 to 16,000."""

INFINITY = float("inf")


class Candidates(NamedTuple):
    """The k best continuations of each source, best first; impossible ones have value -inf."""

    value: Tensor  # [B, k] float64, cumulative log-probability
    parent: Tensor  # [B, k] int64, the hypothesis continued
    token: Tensor  # [B, k] int64


def best_candidates(
    logp: Tensor, base: Tensor, count: int, banned: Sequence[int] = (), *, waits: bool = True
) -> Candidates:
    """The best `count` of base[b, w] + logp[b * W + w, v] for each source b; base is [B, W], float64.

    Sums are taken in float64: in float32 two tokens of different log-probability can get the same sum, and
    then a beam of one would not be greedy. A base of -inf marks a missing hypothesis, whose row of logp is
    not read.
    """
    if _compiled(logp):
        return _by_native(logp, base, count, banned)
    return by_torch(logp, base, count, banned, waits=waits)


def by_torch(
    logp: Tensor, base: Tensor, count: int, banned: Sequence[int] = (), *, waits: bool = True
) -> Candidates:
    """`best_candidates` in torch operations."""
    sources, width = base.shape
    vocabulary = logp.shape[1]
    there = base > -INFINITY
    maxima = _block_maxima(logp, banned).view(sources, width, -1)
    num_blocks = maxima.shape[2]
    sums = (maxima + base[..., None]).masked_fill(~there[..., None], -INFINITY).flatten(1)
    _, blocks = _first(sums, count, waits)
    # Ascending, so that within what is gathered the earlier place is the earlier parent, then the lower id.
    blocks = blocks.sort(dim=1).values
    parent = blocks // num_blocks  # [B, k]
    start = (blocks - parent * num_blocks) * BLOCK
    token = start[..., None] + torch.arange(BLOCK, device=logp.device)  # [B, k, BLOCK]
    place = token + (parent * vocabulary)[..., None]
    possible = there.gather(1, parent)[..., None]
    if banned or vocabulary % BLOCK:
        allowed = torch.arange(vocabulary + BLOCK, device=logp.device) < vocabulary
        if banned:
            allowed[torch.tensor(banned, device=logp.device)] = False
        possible = possible & allowed.take(token)
        place = place.clamp_(max=width * vocabulary - 1)
    value = logp.reshape(sources, width * vocabulary).gather(1, place.flatten(1)).view(place.shape)
    value = (value + base.gather(1, parent)[..., None]).masked_fill(~possible, -INFINITY).flatten(1)
    value, pick = _first(value, count, waits)
    # An impossible token may lie beyond the vocabulary; the step still gets it, as token 0.
    token = token.flatten(1).gather(1, pick).masked_fill(value == -INFINITY, 0)
    found = Candidates(value, parent.gather(1, pick // BLOCK), token)
    return found if value.shape[1] == count else _pad(found, count)


def best_tokens(logp: Tensor, banned: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
    """The logp [N] and id [N] of the most probable token of each row [N, V], of equal ones the lowest.

    Faster than `best_candidates`; the logp is -inf where no token is possible.
    """
    if _compiled(logp):
        base = torch.zeros(len(logp), 1, dtype=torch.float64)
        found = _by_native(logp, base, 1, banned)
        return found.value[:, 0].to(logp.dtype), found.token[:, 0]
    vocabulary = logp.shape[1]
    block = _block_maxima(logp, banned).argmax(1, keepdim=True)  # the first of equal ones
    token = block * BLOCK + torch.arange(BLOCK, device=logp.device)  # [N, BLOCK]
    value = logp.gather(1, token.clamp(max=vocabulary - 1) if vocabulary % BLOCK else token)
    if vocabulary % BLOCK:
        value = value.masked_fill(token >= vocabulary, -INFINITY)
    for number in banned:
        value = value.masked_fill(token == number, -INFINITY)
    pick = value.argmax(1, keepdim=True)
    return value.gather(1, pick)[:, 0], token.gather(1, pick)[:, 0]


def _compiled(logp: Tensor) -> bool:
    """Whether compiled code can read them; both ways are bit-identical, so no switch turns it off."""
    plain = type(logp) is Tensor and logp.dtype == torch.float32 and logp.device.type == "cpu"
    return (
        plain
        and logp.stride(1) == 1
        and not logp.requires_grad
        and native.loaded("choosing").library is not None
    )


def _by_native(logp: Tensor, base: Tensor, count: int, banned: Sequence[int]) -> Candidates:
    sources, width = base.shape
    base = base.contiguous()
    value = base.new_empty(sources, count)
    parent, token = torch.empty(2, sources, count, dtype=torch.int64)
    left_out = torch.tensor([*sorted(banned), logp.shape[1]])
    job = jobs.Choose(
        sources, width, logp.shape[1], logp.stride(0), count, native.slabs(sources),
        *map(native.pointer, (logp, base, left_out, value, parent, token)),
    )  # fmt: skip
    native.call("weft_choose", job)
    return Candidates(value, parent, token)


def _block_maxima(logp: Tensor, banned: Sequence[int]) -> Tensor:
    """The maximum of each block of tokens: [N, V] to [N, ceil(V / BLOCK)]."""
    vocabulary = logp.shape[1]
    whole = vocabulary // BLOCK
    parts = []
    if whole:
        parts.append(logp[:, : whole * BLOCK].view(len(logp), whole, BLOCK).amax(2))
    if vocabulary % BLOCK:
        parts.append(logp[:, whole * BLOCK :].amax(1, keepdim=True))
    maxima = torch.cat(parts, 1) if len(parts) > 1 else parts[0]
    # Only the few blocks that hold a banned token are read again: a masked copy of [N, V] costs more.
    for block in {token // BLOCK for token in banned}:
        inside = [token - block * BLOCK for token in banned if token // BLOCK == block]
        piece = logp[:, block * BLOCK : (block + 1) * BLOCK]
        index = torch.tensor(inside, device=logp.device)
        maxima[:, block] = piece.index_fill(1, index, -INFINITY).amax(1)
    return maxima


def _first(values: Tensor, count: int, waits: bool) -> tuple[Tensor, Tensor]:
    """The `count` largest values per row and their indices; ties go to the lower index.

    `topk` is 15 times faster than a stable sort but leaves the order of equal values undefined. So it
    returns one value more than needed. If two of them are equal, a second `topk` over distinct integers
    decides which values belong to the result. (Logits in bfloat16 are often equal.)
    """
    size = values.shape[1]
    if count >= size:
        ordered, index = values.sort(dim=1, descending=True, stable=True)
        return ordered, index
    top, index = values.topk(count + 1, dim=1)
    equal = (top[:, 1:] == top[:, :-1]) & (top[:, 1:] > -INFINITY)
    if waits and (not bool(equal.any()) or bool(top[:, 0].isnan().any())):  # check_best rejects NaN later
        return top[:, :count], index[:, :count]
    least = top[:, count - 1 : count]
    place = torch.arange(size - 1, -1, -1, device=values.device)
    key = ((values > least).int() + (values >= least).int()) * size + place
    index = key.topk(count, dim=1).indices  # values above the least by index, then the first ones equal to it
    ordered, order = values.gather(1, index).sort(dim=1, descending=True, stable=True)
    return ordered, index.gather(1, order)


def _pad(found: Candidates, count: int) -> Candidates:
    missing = found.value.new_full((len(found.value), count - found.value.shape[1]), -INFINITY)
    nothing = torch.zeros_like(missing, dtype=torch.int64)
    return Candidates(
        torch.cat([found.value, missing], 1),
        torch.cat([found.parent, nothing], 1),
        torch.cat([found.token, nothing], 1),
    )
