"""The Transformer's block: self-attention, a look into the source, a position-wise network (M2).

Norm before (Pre-LN) or after each sublayer; both wrap it in a residual connection.
Read next: encoders/transformer.py, decoders/transformer.py.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.attention import MultiHead
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.shapes import check_choice

Norm = Literal["before", "after"]
Activation = Literal["relu", "gelu", "swiglu"]
Past = tuple[Tensor, Tensor]


class FeedForward(nn.Module):
    """W_2 g(W_1 x + b_1) + b_2, the same at every position.

    Args:
        size: D.
        inner: features between the two layers.
        activation: g; "swiglu" multiplies silu(W_1 x) by a second product (Shazeer 2020).
        dropout: share of inner features set to zero in training.
    """

    def __init__(
        self, size: int, inner: int, *, activation: Activation = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_choice("activation", activation, Activation)
        self.activation = activation
        self.first = Linear(size, 2 * inner if activation == "swiglu" else inner)
        self.second = Linear(inner, size)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[.., D] to [.., D]."""
        h = self.first(x)
        if self.activation == "relu":
            h = F.relu(h)
        elif self.activation == "gelu":
            h = F.gelu(h)
        else:
            gate, h = h.chunk(2, -1)
            h = F.silu(gate) * h
        return self.second(self.dropout(h))


class Block(nn.Module):
    """One layer.

    Args:
        size: D.
        num_heads: H.
        inner: features of the feed-forward network.
        memory_size: width of the source to look into; None for none.
        norm: LayerNorm "before" each sublayer or "after" the sum.
        activation: of the feed-forward network.
        dropout: on each sublayer's output.
        attention_dropout: on attention weights.

    Source: Vaswani et al. 2017 (after); Xiong et al. 2020 (before).
    """

    def __init__(
        self,
        size: int,
        num_heads: int,
        inner: int,
        *,
        memory_size: int | None = None,
        norm: Norm = "before",
        activation: Activation = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, Norm)
        self.norm = norm
        self.attention = MultiHead(size, num_heads, dropout=attention_dropout)
        self.attention_norm = nn.LayerNorm(size)
        if memory_size is not None:
            self.look = MultiHead(
                size, num_heads, memory_size=memory_size, dropout=attention_dropout, name="cross_attention"
            )
            self.look_norm = nn.LayerNorm(size)
        self.network = FeedForward(size, inner, activation=activation, dropout=dropout)
        self.network_norm = nn.LayerNorm(size)
        self.dropout = Dropout(dropout)

    def encode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Every position looks at every other.

        Args:
            x: [B, S, D].
            mask: bool, broadcastable to [B, H, S, S]; None for everything.
        """
        y = self._norm_before(x, self.attention_norm)
        y = self.attention(y, *self.attention.keys_values(y), mask)
        return self._network(self._add(x, y, self.attention_norm))

    def decode(
        self, x: Tensor, past: Past, mask: Tensor | None, source: Past | None, source_mask: Tensor | None
    ) -> tuple[Tensor, Past]:
        """Every position looks at itself, the positions before it, and the source.

        Args:
            x: [N, T, D].
            past: keys and values [N, H, P, K] of what came before.
            mask: bool, broadcastable to [N, H, T, P + T]; None where the causal order says all.
            source: keys and values [B, H, S, K] of the source, N = W B; None for none.
            source_mask: bool, broadcastable to [B, H, W T, S]; None for everything.

        Returns:
            [N, T, D], and the keys and values [N, H, P + T, K].
        """
        y = self._norm_before(x, self.attention_norm)
        keys, values = self.attention.keys_values(y)
        if past[0].shape[2]:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        causal = mask is None and x.shape[1] > 1
        x = self._add(x, self.attention(y, keys, values, mask, causal=causal), self.attention_norm)
        if source is not None:
            y = self.look(self._norm_before(x, self.look_norm), *source, source_mask)
            x = self._add(x, y, self.look_norm)
        return self._network(x), (keys, values)

    def _network(self, x: Tensor) -> Tensor:
        return self._add(x, self.network(self._norm_before(x, self.network_norm)), self.network_norm)

    def _norm_before(self, x: Tensor, norm: nn.Module) -> Tensor:
        return norm(x) if self.norm == "before" else x

    def _add(self, x: Tensor, y: Tensor, norm: nn.Module) -> Tensor:
        """The residual connection: x + f(norm(x)), or norm(x + f(x))."""
        x = x + self.dropout(y)
        return x if self.norm == "before" else norm(x)
