"""Attention scores, which measure how well a query matches a key.

Read next: attention.py, which turns scores into a weighted sum.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.border import Explained, check_tensor, weight_of
from weft.nn.ops import Comparison, Linear, additive


class Score(Explained, nn.Module, ABC):
    """Compares queries with keys.

    A class with a `prepare` of its own expects in `forward` what `prepare` returns. Other keys raise a
    ShapeError if their size tells so, or before the first call of `prepare`; later, those of the same size
    are taken for prepared ones.

    Args:
        query_size: Q, features of a query.
        key_size: D, features of a key.

    Example:
        >>> import torch
        >>> class Near(Score):
        ...     def forward(self, query, keys):  # [B, T, D], [B, S, D] to [B, T, S]
        ...         return -torch.cdist(query, keys)
        >>> Near(2, 2)(torch.zeros(1, 1, 2), torch.tensor([[[3.0, 4.0]]])).tolist()
        [[[-5.0]]]
    """

    checks: ClassVar[Mapping[str, str]] = {"forward": "check_inputs", "prepare": "check_keys"}
    returns: ClassVar[Mapping[str, str | type]] = {"forward": "tensor", "prepare": "tensor"}
    same_sizes: ClassVar[str] = ""  # the name in recipes of a score that needs a query of the key's size
    _prepared = False  # whether `prepare` ran, in classes that have one of their own

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "prepare" in cls.__dict__:
            cls.prepare = _noted(cls.__dict__["prepare"])  # type: ignore[method-assign]
        if "forward" in cls.__dict__:
            cls.forward = _after_prepare(cls.__dict__["forward"])  # type: ignore[method-assign]

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        if self.same_sizes and query_size != key_size:
            raise ShapeError(
                f"score {self.same_sizes}: the query has {query_size} features, the key {key_size}; make "
                f"them equal, set key_size: {query_size}, or use bilinear or additive"
            )
        self.query_size = query_size
        self.key_size = key_size

    def prepare(self, keys: Tensor) -> Tensor:
        """The part computed once per source: [B, S, D] to [B, S, A]. By default the keys themselves."""
        return keys

    def comparison(self) -> Comparison | None:
        """The formula with a prepared key, for compiled code in a search; None if it has another form."""
        return None

    def check_keys(self, keys: Tensor) -> None:
        """Check the input of `prepare`."""
        check_tensor(type(self).__name__, "keys", keys, ("rows", "steps", self.key_size), weight_of(self))

    def check_inputs(self, query: Tensor, keys: Tensor) -> None:
        """Check the inputs of `forward`."""
        name, weight = type(self).__name__, weight_of(self)
        check_tensor(name, "query", query, ("rows", "steps", self.query_size), weight)
        features = self.prepare(query.new_zeros(1, 1, self.key_size)).shape[2]
        check_tensor(name, "keys", keys, (len(query), "steps", features), query if weight is None else weight)

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Energies [B, T, S] of queries [B, T, Q] and prepared keys [B, S, A]; higher is a better match."""


def _noted(prepare: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(prepare)
    def run(self: Score, keys: Tensor) -> Tensor:
        self._prepared = True
        return prepare(self, keys)

    return run


def _after_prepare(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Refuses keys as they are where sizes alone would not tell them from prepared ones."""

    @functools.wraps(forward)
    def run(self: Score, query: Tensor, keys: Tensor) -> Tensor:
        if not self._prepared and type(self).prepare is not Score.prepare:
            name = type(self).__name__
            raise ShapeError(f"{name}: expected prepared keys; call score(query, score.prepare(keys))")
        return forward(self, query, keys)

    return run


class Dot(Score):
    """score(q, k) = q^T k. Its variance grows with the size; see ScaledScore.

    Raises:
        ShapeError: query and key differ in size.

    Source: Luong, Pham & Manning 2015, eq. 8.

    Example:
        >>> import torch
        >>> query = torch.tensor([[[1.0, 0.0]]])  # [B, T, D]
        >>> keys = torch.tensor([[[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]])
        >>> Dot(2, 2)(query, keys).tolist()  # [B, T, S]
        [[[2.0, 0.0, 1.0]]]
    """

    same_sizes = "dot"

    def comparison(self) -> Comparison:
        return Comparison()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(-1, -2)


class ScaledScore(Score):
    """score(q, k) = q^T k / sqrt(d_k): variance 1 for independent features of variance 1.

    Raises:
        ShapeError: query and key differ in size.

    Source: Vaswani et al. 2017, eq. 1.

    Example:
        >>> import torch
        >>> ScaledScore(4, 4)(torch.ones(1, 1, 4), torch.ones(1, 3, 4)).tolist()  # [B, T, S]
        [[[2.0, 2.0, 2.0]]]
    """

    same_sizes = "scaled"

    def comparison(self) -> Comparison:
        return Comparison(1 / math.sqrt(self.key_size))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(-1, -2) / math.sqrt(self.key_size)


class Bilinear(Score):
    """score(q, k) = q^T W k; query and key may differ in size.

    Source: Luong, Pham & Manning 2015, eq. 8 ("general").

    Example:
        >>> import torch
        >>> score = Bilinear(3, 5)
        >>> score(torch.zeros(2, 4, 3), score.prepare(torch.zeros(2, 7, 5))).shape  # [B, T, S]
        torch.Size([2, 4, 7])
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.weight = Linear(key_size, query_size, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """W k, [B, S, Q]."""
        return self.weight(keys)

    def comparison(self) -> Comparison:
        return Comparison()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(-1, -2)


class Additive(Score):
    """score(q, k) = w^T tanh(W [q; k]); query and key may differ in size.

    Args:
        inner: A, hidden features; the query's size by default.

        W [q; k] is computed as W_q q + W_k k, the latter once per source.
    Source: Bahdanau, Cho & Bengio 2014, appendix A.1.2 (v_a^T tanh(W_a s + U_a h)).

    Example:
        >>> import torch
        >>> score = Additive(3, 5)
        >>> score(torch.zeros(2, 4, 3), score.prepare(torch.zeros(2, 7, 5))).shape  # [B, T, S]
        torch.Size([2, 4, 7])
    """

    def __init__(self, query_size: int, key_size: int, *, inner: int | None = None) -> None:
        super().__init__(query_size, key_size)
        inner = inner or query_size
        self.query = Linear(query_size, inner)
        self.key = Linear(key_size, inner, bias=False)
        self.weight = Linear(inner, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """W_k k, [B, S, A]."""
        return self.key(keys)

    def comparison(self) -> Comparison:
        return Comparison(query=self.query, weight=self.weight.weight)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive(self.query(query), keys, self.weight.weight)


class Cosine(Score):
    """score(q, k) = scale · q^T k / (|q| |k|).

    Args:
        scale: factor of the cosine; with 1 (the plain cosine) the softmax is nearly uniform.

    Raises:
        ShapeError: query and key differ in size.

    Source: Graves, Wayne & Danihelka 2014, eq. 6; `scale` is their key strength beta, as a constant.

    Example:
        >>> import torch
        >>> score, query = Cosine(2, 2), torch.tensor([[[3.0, 4.0]]])
        >>> keys = score.prepare(torch.tensor([[[6.0, 8.0], [-4.0, 3.0]]]))
        >>> [[round(x, 3) for x in row] for row in score(query, keys)[0].tolist()]  # [B, T, S]
        [[1.0, 0.0]]
    """

    same_sizes = "cosine"

    def __init__(self, query_size: int, key_size: int, *, scale: float = 1.0) -> None:
        super().__init__(query_size, key_size)
        self.scale = scale

    def prepare(self, keys: Tensor) -> Tensor:
        """Keys of unit length, [B, S, Q]."""
        return F.normalize(keys, dim=-1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return F.normalize(query, dim=-1) @ keys.transpose(-1, -2) * self.scale


class Uniform(Score):
    """score(q, k) = 0, so attention is the mean of all states: c = (1/S) sum_j h_j.

    Example:
        >>> import torch
        >>> Uniform(3, 5)(torch.ones(1, 2, 3), torch.ones(1, 4, 5)).tolist()  # [B, T, S]
        [[[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]
    """

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, D] to zeros [B, T, S]."""
        return query.new_zeros(query.shape[0], query.shape[1], keys.shape[1])
