"""Initialisation of recurrent weights, layer normalisation of gates, and linear maps by heads."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from weft.errors import ConfigError

Start = Literal["orthogonal", "identity", "rotations"]
EPSILON = 1e-5


def recurrent_weights(
    in_size: int, size: int, *, gates: int
) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
    """Weights for G gates, stacked as in torch: weight_x [G H, D], weight_h [G H, H], bias [G H] zeros.

    Each gate's input weights are Glorot-uniform and its recurrent weights orthogonal (Saxe 2014), so products
    of many of them neither grow nor shrink. torch.nn draws both uniformly within 1/sqrt(H).
    """
    weight_x, bias = input_weights(in_size, size, gates=gates)
    weight_h = nn.Parameter(torch.empty(gates * size, size))
    for gate in range(gates):
        nn.init.orthogonal_(weight_h.data[gate * size : (gate + 1) * size])
    return weight_x, weight_h, bias


def input_weights(in_size: int, size: int, *, gates: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Like `recurrent_weights`, without recurrent weights: weight_x [G H, D], bias [G H] zeros."""
    weight_x = nn.Parameter(torch.empty(gates * size, in_size))
    for gate in range(gates):
        nn.init.xavier_uniform_(weight_x.data[gate * size : (gate + 1) * size])
    return weight_x, nn.Parameter(torch.zeros(gates * size))


def rotations_(weight: Tensor) -> Tensor:
    """Fill a matrix [H, H] with rotations of pairs of units by angles drawn uniformly from [0, 2 pi).

    It is orthogonal and does not mix different pairs, so with a norm-preserving activation the network is
    initially a delay line. With odd H the last unit maps to itself.

    Source: Henaff, Szlam & LeCun 2016, "Recurrent orthogonal networks and long-memory tasks", section 4.1.

    Example:
        >>> import torch
        >>> W = rotations_(torch.empty(4, 4))
        >>> torch.allclose(W @ W.T, torch.eye(4), atol=1e-6), W[0, 2:].tolist()
        (True, [0.0, 0.0])
    """
    with torch.no_grad():
        nn.init.eye_(weight)
        angles = torch.empty(len(weight) // 2, dtype=weight.dtype).uniform_(0.0, 2 * math.pi)
        first = torch.arange(0, 2 * len(angles), 2)
        weight[first, first] = weight[first + 1, first + 1] = angles.cos()
        weight[first + 1, first] = angles.sin()
        weight[first, first + 1] = -angles.sin()
    return weight


class GateNorm(nn.Module):
    """gain * (z - mean) / sqrt(variance + epsilon) over the H units of each of the stacked gates.

    Source: Ba, Kiros & Hinton 2016, "Layer normalization", equation 4. They compute mean and variance over
    all gates together; here each gate has its own. The bias is the cell's.
    """

    def __init__(self, size: int, *, gates: int = 1, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.size = size
        self.epsilon = epsilon
        self.gain = nn.Parameter(torch.ones(gates * size))

    def forward(self, z: Tensor) -> Tensor:
        """Normalise z [.., G H]."""
        wide = torch.promote_types(z.dtype, torch.float32)  # in float16 the slope of rsqrt overflows
        apart = z.unflatten(-1, (-1, self.size)).to(wide)
        centred = apart - apart.mean(-1, keepdim=True)
        scaled = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.epsilon)
        return scaled.flatten(-2).to(z.dtype) * self.gain


def rates(heads: int) -> tuple[Tensor, Tensor]:
    """log A and b of a decay exp(-A softplus(z + b)), one each per head.

    A is uniform in [1, 16] and softplus(b) log-uniform in [0.001, 0.1], as in Mamba-2, so heads forget at
    different speeds.

    Source: Dao & Gu 2024, "Transformers are SSMs", the published code.
    """
    steps = torch.exp(torch.empty(heads).uniform_(math.log(1e-3), math.log(1e-1)))
    return torch.empty(heads).uniform_(1.0, 16.0).log(), steps + torch.log(-torch.expm1(-steps))


class Headwise(nn.Module):
    """y = W x + b with W block-diagonal: each of the heads maps its own features.

    The weight is [G, heads, K, K] for G outputs, K = size / num_heads; the last axis is the input's.
    """

    bias: nn.Parameter | None

    def __init__(self, size: int, num_heads: int, *, outputs: int = 1, bias: bool = True) -> None:
        super().__init__()
        if num_heads < 1 or size % num_heads:
            raise ConfigError(f"num_heads: expected a divisor of the size {size}, got {num_heads}")
        width = size // num_heads
        self.weight = nn.Parameter(torch.randn(outputs, num_heads, width, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(outputs * size)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[.., size] to [.., G size]."""
        apart = x.unflatten(-1, (self.weight.shape[1], -1))
        y = torch.einsum("...hi,ghoi->...gho", apart, self.weight).flatten(-3)
        return y if self.bias is None else y + self.bias
