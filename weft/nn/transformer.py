"""The Transformer's block: self-attention, a look into the source, a position-wise network (M2).

Norm before (Pre-LN) or after each sublayer; both wrap it in a residual connection.
Read next: encoders/transformer.py, decoders/transformer.py.
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.attention import MultiHead
from weft.nn.kernels.linear import Linear

Norm = Literal["before", "after"]
Activation = Literal["relu", "gelu", "swiglu"]


class FeedForward(nn.Module):
    """W_2 g(W_1 x + b_1) + b_2, the same at every position.

    Args:
        size: D.
        inner: features between the two layers.
        activation: g; "swiglu" multiplies silu(W_1 x) by a second product (Shazeer 2020).
        dropout: share of inner features set to zero in training.
    """

    def __init__(self, size: int, inner: int, *, activation: Activation = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.activation = activation
        self.first = Linear(size, 2 * inner if activation == "swiglu" else inner)
        self.second = Linear(inner, size)
        self.dropout = nn.Dropout(dropout)

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
        self.dropout = nn.Dropout(dropout)

    def sublayer(self, x: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x + f(norm(x)), or norm(x + f(x)): the residual connection around every part."""
        if self.norm == "before":
            return x + self.dropout(function(norm(x)))
        return norm(x + self.dropout(function(x)))
