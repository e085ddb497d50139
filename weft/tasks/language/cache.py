"""A neural cache: recent words become more probable, most of all after similar states of the network.

    p_cache(w | h_t)  ∝  sum over i < t with w_i = w of  exp(sharpness h_t · h_i / √D)

h_i are the features from which the network predicted token i, of the last `size` tokens. Nothing is trained.
Source: Grave, Joulin & Usunier 2017, "Improving neural language models with a continuous cache", equations 2
and 5; the √D is ours. Read next: mixture.py, which mixes it in.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.models import Generator
from weft.tasks.language.scoring import picked, streamed
from weft.tasks.language.stream import Stream

SHARPNESS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The values that are tried; 0 counts the words and ignores the states."""

BLOCK = 512  # queries at a time


class Cache(NamedTuple):
    """The settings of a cache."""

    size: int  # tokens
    sharpness: float
    weight: float  # in the mixture with the network


class CacheMemory(NamedTuple):
    """What a cache holds while a text is read."""

    keys: Tensor  # [N, P, D] the features after each token of the text
    tokens: Tensor  # [N, P] those tokens

    @classmethod
    def of(cls, features: Tensor, tokens: Tensor, size: int) -> "CacheMemory":
        """The cache of so many tokens after a text: tokens [N, P], and features [N, P, D] after each."""
        # The newest features predict the next token, and the oldest token's own are not needed.
        return cls(features[:, -(size + 1) :], tokens[:, -(size + 1) :])

    def read(self, token: Tensor, h: Tensor, size: int) -> "CacheMemory":
        """The cache after another token [N], with the features [N, D] after it."""
        keys = torch.cat([self.keys.to(h.dtype), h[:, None]], 1)
        return self.of(keys, torch.cat([self.tokens, token[:, None]], 1), size)

    def mixed(self, logp: Tensor, cache: Cache) -> Tensor:
        """The network's log-probabilities [N, V] of the next token, mixed with the cache's."""
        if self.tokens.shape[1] < 2 or not cache.weight:
            return logp
        energies = _energies(self.keys[:, :-1], self.keys[:, -1, :, None])[..., 0]
        weights = (energies * cache.sharpness).softmax(1).to(logp.dtype)
        found = torch.zeros_like(logp).scatter_add_(1, self.tokens[:, 1:], weights).log()
        if cache.weight >= 1:
            return found
        return torch.logaddexp(logp + math.log1p(-cache.weight), found + math.log(cache.weight))


class CacheScores(NamedTuple):
    """Log-probabilities of the tokens of a text in nats."""

    neural: np.ndarray  # [N]
    cache: np.ndarray  # [K, N], a row for each sharpness; the network's for the first token


def cached_logp(
    model: Generator, stream: Stream, size: int, sharpness: Sequence[float] = SHARPNESS
) -> CacheScores:
    """Read a text once, with the network and the cache.

    Args:
        model: in evaluation mode; its state is carried through the text.
        stream: the text.
        size: tokens that the cache remembers.
        sharpness: the values to try.
    """
    neural, found = [], []
    keys = tokens = None
    with torch.inference_mode():
        for h, target in streamed(model, stream.tokens, 1):
            neural.append(picked(model.head, h, target))
            for at in range(0, h.shape[1], BLOCK):
                query, new = h[0, at : at + BLOCK], target[0, at : at + BLOCK]
                keys = query if keys is None else torch.cat([keys[-size:], query])
                tokens = new if tokens is None else torch.cat([tokens[-size:], new])
                found.append(_block(query, keys, tokens, size, sharpness))
    both = CacheScores(np.concatenate(neural, 1)[0], np.concatenate(found, 1))
    both.cache[:, 0] = both.neural[0]  # nothing to remember yet
    return both


def _block(query: Tensor, keys: Tensor, tokens: Tensor, size: int, sharpness: Sequence[float]) -> np.ndarray:
    """Log-probabilities [K, T] of the last T of P tokens, from queries [T, D] and keys [P, D]."""
    count, last = len(keys), torch.arange(len(keys) - len(query), len(keys), device=keys.device)
    back = last[:, None] - torch.arange(count, device=keys.device)  # [T, P]
    hidden = (back < 1) | (back > size)
    same = tokens[last][:, None] == tokens
    energies = _energies(keys, query.mT).mT
    found = [
        ((energies * factor).masked_fill(hidden, -torch.inf).softmax(1) * same).sum(1).log()
        for factor in sharpness
    ]
    logp: np.ndarray = torch.stack(found).double().cpu().numpy()
    return logp


def _energies(keys: Tensor, query: Tensor) -> Tensor:
    """[.., P, T] from keys [.., P, D] and queries [.., D, T]."""
    wide = torch.promote_types(keys.dtype, torch.float32)
    return keys.to(wide) @ query.to(wide) / math.sqrt(keys.shape[-1])
