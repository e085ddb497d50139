"""Attention: energies, mask, weights, weighted sum; and multi-head attention.

`Attention` works with every score, `MultiHead` is the Transformer's. In both, the W hypotheses of
a beam share one source: their queries are folded into the step axis, so keys and values are never copied.
Weights are a softmax or can be exactly zero: sparsemax and 1.5-entmax project energies onto the simplex,
p_j = [(alpha - 1) z_j - tau]_+^(1 / (alpha - 1)), with tau such that p sums to one; alpha = 1 is softmax,
2 sparsemax, 1.5 is in between. The positions above tau are found by sorting; the rest is a formula over
these positions, differentiated by autograd.
Read next: scores.py, decoders/recurrent.py, transformer.py.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.nn.border import called, check_attention_mask, check_like, check_tensor, explained, weight_of
from weft.nn.distances import NO_ORDER, Order, turned
from weft.nn.encoders.encoder import Memory, check_memory
from weft.nn.norms import norm_of
from weft.nn.ops import Linear, attention, attention_weights, look
from weft.nn.scores import Score
from weft.probe import edit_active, edited, record, watching
from weft.setting_types import DropoutRate, Size
from weft.shapes import check_choice, check_count

Weights = Literal["softmax", "sparsemax", "entmax"]


class Source(NamedTuple):
    """Keys and values of a source, computed once and shared by all its hypotheses.

    Attributes:
        keys: [B, S, A] prepared by the score.
        values: [B, S, D].
        mask: [B, S] bool.
    """

    keys: Tensor  # [B, S, A] prepared by the score
    values: Tensor  # [B, S, D]
    mask: Tensor  # [B, S] bool
    per_source = True


class Attention(nn.Module):
    """alpha = softmax(score(q, K)), out = sum_j alpha_j v_j.

    Args:
        score: compares queries with keys.
        memory_size: D of the memory.
        key_size: project the keys, k = W_k h, to this size; None uses the states unchanged.
        value_size: project the values, v = W_v h, likewise.
        shared: use the projected keys as values, k = v = W_k h.
        weights: softmax, or a sparse alternative that can give weights of exactly zero.

    Attributes:
        size: features of the result.

    Raises:
        ConfigError: `shared` without a key_size, or with a value_size; unknown weights.

    Example:
        >>> import torch
        >>> from weft.nn import Additive, Memory
        >>> memory = Memory(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0, torch.zeros(2, 5))
        >>> attention = Attention(Additive(3, 5), 5)
        >>> queries = torch.zeros(2, 4, 3)  # [B, T, Q]
        >>> attention(queries, attention.prepare(memory)).shape  # [B, T, D]
        torch.Size([2, 4, 5])
    """

    def __init__(
        self,
        score: Score,
        memory_size: int,
        *,
        key_size: Size | None = None,
        value_size: Size | None = None,
        shared: bool = False,
        weights: Weights = "softmax",
    ) -> None:
        super().__init__()
        check_choice("weights", weights, Weights)
        if shared and (key_size is None or value_size is not None):
            raise ConfigError(
                "shared: expected a key_size and no value_size for projected keys that serve as values, "
                f"got {key_size} and {value_size}"
            )
        self.memory_size = memory_size
        self.score = score
        self.weights: Weights = weights
        self.shared = shared
        self.key = Linear(memory_size, key_size, bias=False) if key_size else nn.Identity()
        self.value = Linear(memory_size, value_size, bias=False) if value_size else nn.Identity()
        self.size = (key_size if shared else value_size) or memory_size

    def prepare(self, memory: Memory) -> Source:
        """Compute keys and values, once per source.

        Raises:
            ShapeError: no memory, or one of a wrong shape, dtype or device.
        """
        check_memory("Attention", memory, self.memory_size, weight_of(self))
        keys = self.key(memory.states)
        values = keys if self.shared else self.value(memory.states)
        mask = memory.mask if memory.mask.dtype == torch.bool else memory.mask != 0
        return Source(self.score.prepare(keys), values, mask)

    @explained("check_inputs")
    def forward(self, query: Tensor, source: Source) -> Tensor:
        """Queries [N, T, Q], N = W B, to contexts [N, T, D]; records the weights [N, T, S] for probes."""
        rows, steps, _ = query.shape
        folded = query.reshape(source.keys.shape[0], -1, query.shape[2])  # [B, W T, Q]
        by = None if self.weights != "softmax" or watching() or edit_active() else self.score.comparison()
        if by is not None and by.query is not None and by.weight is not None:
            context = look(by.query(folded), source.keys, by.weight, source.values, source.mask)
            return context.reshape(rows, steps, -1)
        weights = weights_of(self.score(folded, source.keys), source.mask[:, None], self.weights)
        weights = edited("attention", weights.reshape(rows, steps, -1))
        if watching():
            record("attention", weights)
        return mixed(weights, source)

    def check_inputs(self, query: Tensor, source: Source) -> None:
        """Check the inputs of `forward`."""
        check_tensor("Attention", "query", query, ("rows", "steps", self.score.query_size), weight_of(self))
        if not isinstance(source, Source):
            raise ShapeError(
                f"Attention: expected a source from prepare(memory), got {called(source)}; "
                "MultiheadAttention takes query, key and value like torch's"
            )
        if not len(source.keys) or len(query) % len(source.keys):
            raise ShapeError(
                f"Attention: expected a query of the {len(source.keys)} rows of the source, got {len(query)}"
            )
        check_like("Attention", source.values, [("query", query)])


def mixed(weights: Tensor, source: Source) -> Tensor:
    """Weights [N, T, S], N = W B, to contexts [N, T, D]: sums of the source's values."""
    folded = weights.reshape(source.values.shape[0], -1, weights.shape[2])  # [B, W T, S]
    context = folded.to(source.values.dtype) @ source.values
    return context.reshape(*weights.shape[:2], -1)


def weights_of(energy: Tensor, mask: Tensor, kind: Weights = "softmax") -> Tensor:
    """Energies [.., S] to weights, zero where the mask is False, that sum to one."""
    if kind == "softmax":
        return masked_softmax(energy, mask)
    energy = energy.masked_fill(~mask, torch.finfo(energy.dtype).min)
    return sparsemax(energy) if kind == "sparsemax" else entmax15(energy)


def masked_softmax(energy: Tensor, mask: Tensor) -> Tensor:
    """softmax over the last axis where the mask is True; a fully masked row gives equal weights, not NaN."""
    return energy.masked_fill(~mask, torch.finfo(energy.dtype).min).softmax(-1)


def sparsemax(z: Tensor) -> Tensor:
    """p_j = max(0, z_j - tau), tau = (sum of the k largest - 1) / k, over the last axis.

    k is the largest number with 1 + k z_(k) > z_(1) + .. + z_(k).
    Source: Martins & Astudillo 2016, algorithm 1.

    Example:
        >>> [round(p, 4) for p in sparsemax(torch.tensor([1.0, 0.5, -1.0])).tolist()]
        [0.75, 0.25, 0.0]
    """
    z = (z - z.amax(-1, keepdim=True).detach()).clamp(min=-2)  # values below -1 have weight zero
    with torch.no_grad():
        ordered, rank = _ordered(z)
        enough = 1 + rank * ordered > ordered.cumsum(-1)
        above = _above(z, ordered, enough.sum(-1, keepdim=True))
    tau = ((z * above).sum(-1, keepdim=True) - 1) / above.sum(-1, keepdim=True)
    return (z - tau).clamp(min=0)


def entmax15(z: Tensor) -> Tensor:
    """p_j = max(0, z_j / 2 - tau)^2, over the last axis.

    For the k largest z_j / 2, with mean m and sum of squared deviations s: tau = m - sqrt((1 - s) / k).
    Source: Peters, Niculae & Martins 2019, algorithm 2.

    Example:
        >>> [round(p, 4) for p in entmax15(torch.tensor([1.0, 1.0, -3.0])).tolist()]
        [0.5, 0.5, 0.0]
    """
    z = ((z - z.amax(-1, keepdim=True).detach()) / 2).clamp(min=-2)
    with torch.no_grad():
        ordered, rank = _ordered(z)
        mean = ordered.cumsum(-1) / rank
        spread = (ordered**2).cumsum(-1) - rank * mean**2
        tau = mean - ((1 - spread) / rank).clamp(min=0).sqrt()
        above = _above(z, ordered, (tau <= ordered).sum(-1, keepdim=True))
    count = above.sum(-1, keepdim=True)
    mean = (z * above).sum(-1, keepdim=True) / count
    spread = (((z - mean) ** 2) * above).sum(-1, keepdim=True)
    tau = mean - ((1 - spread) / count).clamp(min=torch.finfo(z.dtype).tiny).sqrt()
    return (z - tau).clamp(min=0) ** 2


def _ordered(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.sort(-1, descending=True).values, torch.arange(1, z.shape[-1] + 1, device=z.device)


def _above(z: Tensor, ordered: Tensor, count: Tensor) -> Tensor:
    """1 for values among the `count` largest, otherwise 0."""
    return (z >= ordered.gather(-1, count - 1)).to(z.dtype)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """[B, T, H K] to [B, H, T, K]."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


class HeadSource(NamedTuple):
    """Keys and values of a source for multi-head attention, shared by all its hypotheses."""

    keys: Tensor  # [B, H, S, K]
    values: Tensor  # [B, H, S, K]
    per_source = True


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Variants of self-attention in Llama, Qwen, GPT-NeoX and others: a recipe's `heads`.

    Args:
        key_value: heads of keys and values, each shared by as many query heads (Ainslie et al. 2023); None
            for one per query head.
        size: K, features of a head; None for D / H.
        norm: RMSNorm over the features of each query and key, before positions rotate them.
        bias: biases of queries, keys and values; None for those of the other linear layers.
        rotary: leading features of a head that rotary positions rotate; None for all.

    Raises:
        ConfigError: a number below 1.

    Example:
        >>> import torch
        >>> from weft.nn import MultiHead
        >>> def count(heads):
        ...     return sum(p.numel() for p in MultiHead(8, 4, heads=heads).parameters())
        >>> count(Heads()), count(Heads(key_value=1))  # all queries share one head of keys and values
        (288, 180)
    """

    key_value: int | None = None
    size: Size | None = None
    norm: bool = False
    bias: bool | None = None
    rotary: int | None = None

    def __post_init__(self) -> None:
        for name in ("key_value", "size", "rotary"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"heads.{name}: expected at least 1, got {value}")

    def shared(self, num_heads: int) -> int:
        """The number of heads of keys and values.

        Raises:
            ShapeError: they cannot be shared equally.
        """
        found = self.key_value or num_heads
        if num_heads % found:
            raise ShapeError(
                f"heads.key_value: expected a divisor of the {num_heads} heads, got {found}; take one"
            )
        return found

    def width(self, size: int, num_heads: int) -> int:
        """K, features of a head, for D and H.

        Raises:
            ShapeError: the heads do not divide the width, and no size is given.
        """
        if self.size is None and size % num_heads:
            raise ShapeError(f"{num_heads} heads do not divide the width {size}; take a divisor of {size}")
        return self.size or size // num_heads

    def rotated(self, size: int, num_heads: int) -> int:
        """Features of a head that rotary positions rotate.

        Raises:
            ShapeError: a head has fewer features.
        """
        width = self.width(size, num_heads)
        if self.rotary is not None and self.rotary > width:
            raise ShapeError(
                f"heads.rotary: expected at most {width}, the features of a head, got {self.rotary}"
            )
        return self.rotary or width


USUAL = Heads()


class MultiHead(nn.Module):
    """Concat(head_1 .. head_H) W_O with head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(d_k)) V W_i^V.

    Args:
        size: D of queries and of the result.
        num_heads: H; must divide the size.
        memory_size: width of the memory; None for self-attention.
        dropout: dropout rate of attention weights.
        bias: whether the linear layers have biases.
        name: name of the weights for probes.
        heads: variants, see Heads.
        norm_epsilon: of the norms of queries and keys.

    Raises:
        ShapeError: the heads do not divide the size.

    Source: Vaswani et al. 2017, section 3.2.2.

    Example:
        >>> import torch
        >>> layer, x = MultiHead(6, 3), torch.zeros(2, 7, 6)  # [B, T, D]
        >>> layer(x, *layer.keys_values(x), None, causal=True).shape
        torch.Size([2, 7, 6])
    """

    def __init__(
        self,
        size: int,
        num_heads: int,
        *,
        memory_size: Size | None = None,
        dropout: DropoutRate = 0.0,
        bias: bool = True,
        name: str = "self_attention",
        heads: Heads = USUAL,
        norm_epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        check_count("MultiHead: size", size)
        check_count("MultiHead: num_heads", num_heads)
        width, shared = heads.width(size, num_heads), heads.shared(num_heads)
        inputs = bias if heads.bias is None else heads.bias
        self.num_heads = num_heads
        self.shared = shared
        self.dropout = dropout
        self.name = name
        self.query = Linear(size, num_heads * width, bias=inputs)
        self.key_value = Linear(memory_size or size, 2 * shared * width, bias=inputs)
        self.out = Linear(num_heads * width, size, bias=bias)
        self.query_norm, self.key_norm = (
            norm_of(width, "rms", epsilon=norm_epsilon) if heads.norm else nn.Identity() for _ in range(2)
        )

    @explained("check_memory")
    def keys_values(self, x: Tensor, order: Order = NO_ORDER) -> tuple[Tensor, Tensor]:
        """Keys and values [B, H, S, K] of a memory [B, S, D]; keys are rotated as given by `order`.

        H is smaller than the number of heads if queries share them.
        """
        k, v = self.key_value(x).chunk(2, -1)
        k = self.key_norm(split_heads(k, self.shared))
        return turned(k, order.turn), split_heads(v, self.shared)

    def check_memory(self, x: Tensor, order: Order = NO_ORDER) -> None:
        """Check the input of `keys_values`."""
        weight = self.key_value.weight
        check_tensor("MultiHead", "the memory x", x, ("rows", "steps", weight.shape[1]), weight)

    def check_inputs(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, **more: Any
    ) -> None:
        """Check the inputs of `forward`."""
        weight = self.query.weight
        check_tensor("MultiHead", "x", x, ("rows", "steps", weight.shape[1]), weight)
        for what, given in (("keys", keys), ("values", values)):
            if not isinstance(given, Tensor) or given.dim() != 4:
                raise ShapeError(
                    f"MultiHead: expected {what} of shape [rows, heads, steps, features] from "
                    f"keys_values(memory), got {called(given)}; MultiheadAttention takes query, key and "
                    "value like torch's"
                )
            check_like("MultiHead", weight, [(what, given)])
        if not len(keys) or len(x) % len(keys):
            raise ShapeError(f"MultiHead: expected x of the {len(keys)} rows of the keys, got {len(x)}")
        if mask is not None:
            sizes = len(keys), self.num_heads, len(x) * x.shape[1] // len(keys), keys.shape[2]
            check_attention_mask("MultiHead", mask, sizes, x.device)

    @explained("check_inputs")
    def forward(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        order: Order = NO_ORDER,
        causal: bool = False,
    ) -> Tensor:
        """Queries x [N, T, D] over keys and values [B, H, S, K], where N = W B.

        Args:
            mask: bool, broadcastable to [B, H, W T, S]; None for no mask.
            order: relative positions of queries and keys, for self-attention.
            causal: query t sees keys up to t; needs W = 1.
        """
        if mask is not None and mask.dtype != torch.bool:  # torch would add its numbers to the energies
            self.check_inputs(x, keys, values, mask)
        folded = x.reshape(keys.shape[0], -1, x.shape[2])  # [B, W T, D]
        q = turned(self.query_norm(split_heads(self.query(folded), self.num_heads)), order.turn)
        if self.shared < self.num_heads:
            each = self.num_heads // self.shared
            keys, values = keys.repeat_interleave(each, 1), values.repeat_interleave(each, 1)
        if edit_active():  # by the formula, whose weights can be changed
            weights = attention_weights(q, keys, mask, bias=order.bias, causal=causal)
            weights = edited(self.name, weights)
            record(self.name, weights)
            y = weights.to(values.dtype) @ values
        else:
            if watching():
                record(self.name, attention_weights(q, keys, mask, bias=order.bias, causal=causal))
            dropout = self.dropout if self.training else 0.0
            y = attention(  # [B, H, W T, K]
                q, keys, values, mask, bias=order.bias, causal=causal, dropout=dropout
            )
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], -1))
