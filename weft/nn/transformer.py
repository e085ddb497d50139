"""The Transformer block: self-attention, cross-attention and a position-wise network.

Each sublayer has a residual connection and a norm before it (pre-norm) or after it (post-norm). In a parallel
block the network reads the block's input instead of the attention's output.
Read next: encoders/transformer.py, decoders/transformer.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.attention import USUAL, Heads, MultiHead
from weft.nn.border import check_attention_mask, check_tensor, explained
from weft.nn.cache import KeyValueCache
from weft.nn.distances import NO_ORDER, Order
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Linear, decoding
from weft.setting_types import DropoutRate, Size
from weft.shapes import check_choice

Norm = Literal["before", "after", "parallel"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_exact"]
GELU_GATED = ("geglu", "geglu_exact")
GATED = ("swiglu", *GELU_GATED)
"""Activations with a second linear map."""

BENDS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "swiglu": F.silu,
    "geglu_exact": F.gelu,
    **dict.fromkeys(("gelu_tanh", "geglu"), partial(F.gelu, approximate="tanh")),
}
"""What bends the first map, or the half of it that is the gate."""

Past = tuple[Tensor, Tensor]


class FeedForward(nn.Module):
    """W_2 g(W_1 x + b_1) + b_2, applied at every position.

    Args:
        size: D.
        inner: hidden features.
        activation: g; "gelu_tanh" is GPT-2's approximation, "silu" is x sigmoid(x), "swiglu" multiplies
            silu(W_1 x) by a second linear map, and "geglu" gelu_tanh(W_1 x) (Shazeer 2020),
            "geglu_exact" gelu(W_1 x).
        bias: whether there are b_1 and b_2.
        dropout: dropout rate of the hidden features.

    Raises:
        ConfigError: an unknown activation.

    Example:
        >>> import torch
        >>> FeedForward(6, 24)(torch.zeros(2, 7, 6)).shape  # [B, T, D]
        torch.Size([2, 7, 6])
    """

    def __init__(
        self,
        size: int,
        inner: int,
        *,
        activation: Activation = "relu",
        bias: bool = True,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, Activation)
        self.activation = activation
        self.first = Linear(size, 2 * inner if activation in GATED else inner, bias=bias)
        self.second = Linear(inner, size, bias=bias)
        self.dropout = Dropout(dropout)

    def check_inputs(self, x: Tensor) -> None:
        """Check the input of `forward`."""
        check_tensor("FeedForward", "x", x, ("..", self.first.in_features), self.first.weight)

    @explained("check_inputs")
    def forward(self, x: Tensor) -> Tensor:
        """[.., D] to [.., D]."""
        h, bend = self.first(x), BENDS[self.activation]
        if self.activation in GATED:
            gate, h = h.chunk(2, -1)
            h = bend(gate) * h
        else:
            h = bend(h)
        return self.second(self.dropout(h))


class Residual(nn.Module):
    """A layer of sublayers with residual connections and a norm before or after each.

    Attributes:
        norm: place of the norms; see TransformerBlock.
        dropout: of a sublayer's output.
    """

    norm: Norm
    dropout: Dropout

    def _norm_before(self, x: Tensor, norm: nn.Module) -> Tensor:
        return x if self.norm == "after" else norm(x)

    def _add(self, x: Tensor, y: Tensor, norm: nn.Module) -> Tensor:
        """The residual connection: x + f(norm(x)), or norm(x + f(x))."""
        x = self.dropout(y, onto=x)
        return norm(x) if self.norm == "after" else x

    def _looked(self, x: Tensor, source: Past | None, source_mask: Tensor | None) -> Tensor:
        """x after cross-attention, if there is a source."""
        if source is None:
            return x
        y = self.look(self._norm_before(x, self.look_norm), *source, source_mask)
        return self._add(x, y, self.look_norm)

    def _network(self, x: Tensor, begin: Tensor) -> Tensor:
        """Add the network's output to x; `begin` is the block's input."""
        y = self._norm_before(begin if self.norm == "parallel" else x, self.network_norm)
        return self._add(x, self.network(y), self.network_norm)

    def parts(self) -> dict[str, nn.Module]:
        """Norms and linear layers by the names used in kernels/decoding.py."""
        own: dict[str, Any] = self._modules  # attributes took a tenth of a search of one short text
        found = {"network_norm": own["network_norm"]}
        found |= {name: own["network"]._modules[name] for name in ("first", "second")}
        if "look" in own:
            look = own["look"]._modules
            found |= {"cross_norm": own["look_norm"], "cross_query": look["query"], "cross_out": look["out"]}
        return found


class TransformerBlock(Residual):
    """One Transformer layer.

    Attributes:
        calls: methods that use its parameters, around which train/sharding.py gathers them.
        regions: methods that torch.compile may compile (devices.py).

    Args:
        size: D.
        num_heads: H.
        inner: features of the feed-forward network.
        memory_size: width of the source for cross-attention; None for no cross-attention.
        norm: "before" each sublayer or "after" its residual sum; "parallel" is before, with
            x + f(norm_1(x)) + g(norm_2(x)) for attention f and network g.
        norm_kind: "layer" or "rms".
        norm_epsilon: of the norms.
        activation: of the feed-forward network.
        bias: whether linear layers and LayerNorms have biases.
        dropout: dropout rate of each sublayer's output.
        attention_dropout: dropout rate of attention weights.
        heads: variants of self-attention; the size of a head is also cross-attention's.

    Raises:
        ConfigError: an unknown norm.

    Source: Vaswani et al. 2017 (after); Xiong et al. 2020 (before); Wang & Komatsuzaki 2021 (parallel).

    Example:
        >>> import torch
        >>> block = TransformerBlock(6, 2, 24)
        >>> block.encode(torch.zeros(2, 7, 6), None).shape  # [B, T, D]
        torch.Size([2, 7, 6])
    """

    calls: ClassVar[tuple[str, ...]] = ("encode", "source", "decode")
    regions: ClassVar[tuple[str, ...]] = ("encode", "_attended")

    def __init__(
        self,
        size: int,
        num_heads: int,
        inner: int,
        *,
        memory_size: Size | None = None,
        norm: Norm = "before",
        norm_kind: NormKind = "layer",
        norm_epsilon: float = 1e-5,
        activation: Activation = "relu",
        bias: bool = True,
        dropout: DropoutRate = 0.1,
        attention_dropout: DropoutRate = 0.0,
        heads: Heads = USUAL,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, Norm)
        self.norm = norm
        self.attention = MultiHead(
            size, num_heads, dropout=attention_dropout, bias=bias, heads=heads, norm_epsilon=norm_epsilon
        )
        self.attention_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        if memory_size is not None:
            self.look = MultiHead(
                size,
                num_heads,
                memory_size=memory_size,
                dropout=attention_dropout,
                bias=bias,
                name="cross_attention",
                heads=Heads(size=heads.size),
            )
            self.look_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        self.network = FeedForward(size, inner, activation=activation, bias=bias, dropout=dropout)
        self.network_norm = norm_of(size, norm_kind, epsilon=norm_epsilon, bias=bias)
        self.dropout = Dropout(dropout)

    def check_inputs(self, x: Tensor, mask: Tensor | None = None, order: Order = NO_ORDER) -> None:
        """Check the inputs of `encode`."""
        weight = self.network.first.weight
        check_tensor("TransformerBlock", "x", x, ("rows", "steps", weight.shape[1]), weight)
        if mask is not None:
            sizes = len(x), self.attention.num_heads, x.shape[1], x.shape[1]
            check_attention_mask("TransformerBlock", mask, sizes, x.device)

    @explained("check_inputs")
    def encode(self, x: Tensor, mask: Tensor | None = None, order: Order = NO_ORDER) -> Tensor:
        """Run an encoder layer: every position attends to all positions.

        Args:
            x: [B, S, D].
            mask: bool, broadcastable to [B, H, S, S]; None for no mask.
            order: relative positions.
        """
        y = self._norm_before(x, self.attention_norm)
        y = self.attention(y, *self.attention.keys_values(y, order), mask, order=order)
        return self._network(self._add(x, y, self.attention_norm), x)

    def source(self, states: Tensor) -> Past:
        """Keys and values [B, H, S, K] of a source [B, S, D_s] for `decode`."""
        return self.look.keys_values(states)

    def decode(
        self,
        x: Tensor,
        cache: KeyValueCache,
        layer: int,
        mask: Tensor | None,
        source: Past | None,
        source_mask: Tensor | None,
        order: Order = NO_ORDER,
    ) -> tuple[Tensor, Tensor]:
        """Run a decoder layer: every position attends to itself, earlier positions and the source.

        Args:
            x: [N, T, D], N = W B.
            cache: earlier positions, E entries per source (cache.py).
            layer: index of this layer in the cache.
            mask: bool, broadcastable to [B, H, W T, E + W T]; None if the causal mask suffices.
            source: keys and values [B, H, S, K] of the source; None without a source.
            source_mask: bool, broadcastable to [B, H, W T, S]; None for no mask.
            order: relative positions of the new and all P + T positions.

        Returns:
            [N, T, D], and the layer's entries [B, 2, H, E + W T, K].
        """
        y = self._norm_before(x, self.attention_norm)
        folded = y.reshape(cache.sources, -1, y.shape[2])  # [B, W T, D]
        entries = cache.append(layer, *self.attention.keys_values(folded, order))
        steps = x.shape[1]
        causal = mask is None and (not isinstance(steps, int) or steps > 1)  # in a graph of any length
        return self._attended(x, y, entries, mask, causal, source, source_mask, order), entries

    def _attended(
        self,
        x: Tensor,
        y: Tensor,
        entries: Tensor,
        mask: Tensor | None,
        causal: bool,
        source: Past | None,
        source_mask: Tensor | None,
        order: Order,
    ) -> Tensor:
        """The rest of `decode`, once its keys and values are in the entries; y gives the queries."""
        keys, values = entries.unbind(1)  # its gradient is one copy, that of two slices four
        y = self.attention(y, keys, values, mask, order=order, causal=causal)
        begin, x = x, self._add(x, y, self.attention_norm)
        return self._network(self._looked(x, source, source_mask), begin)

    def parts(self) -> dict[str, nn.Module]:
        own: dict[str, Any] = self._modules
        attention = {name: own["attention"]._modules[name] for name in ("query", "key_value", "out")}
        return {"attention_norm": own["attention_norm"], **attention, **super().parts()}


def blocks_of(
    size: int,
    num_layers: int,
    num_heads: int,
    inner: int | None,
    *,
    block: Callable[..., nn.Module] = TransformerBlock,
    **settings: Any,
) -> tuple[nn.ModuleList, nn.Module]:
    """The blocks of an encoder or a decoder, and the final norm, which is the identity for post-norm.

    The settings are those of `block`.
    """
    blocks = nn.ModuleList(block(size, num_heads, inner or 4 * size, **settings) for _ in range(num_layers))
    if settings["norm"] == "after":
        return blocks, nn.Identity()
    kind, epsilon, bias = (settings[name] for name in ("norm_kind", "norm_epsilon", "bias"))
    return blocks, norm_of(size, kind, epsilon=epsilon, bias=bias)


def form_of(blocks: nn.ModuleList, num_heads: int) -> decoding.Form:
    """The settings that these blocks share, for compiled code."""
    network, before = blocks[0].network, blocks[0].norm == "before"
    return decoding.Form(num_heads, network.second.in_features, network.activation, before)
