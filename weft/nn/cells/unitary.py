"""The complex unitary network, with a norm-preserving recurrence. Read next: orthogonal.py."""

import math

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.initial import input_weights
from weft.nn.ops import linear
from weft.probe import record_all

EPSILON = 1e-10  # inside the square root of |z|, whose slope at 0 is infinite


class Unitary(VectorCell):
    """h_t = modReLU(W h_{t-1} + U x_t), y_t = V [Re h_t; Im h_t] + d, with h complex and W unitary.

    W = D_3 R_2 F^-1 D_2 P R_1 F D_1: D = diag(exp(i theta)), R = I - 2 v v* / |v|^2, F the Fourier
    transform, P a fixed permutation. modReLU(z) = z relu(|z| + b) / |z|.

    Args:
        in_size: D, features of the input.
        size: H, features of the output, and complex features of the state.

    The state is (Re h, Im h). |z| is the square root of Re^2 + Im^2 + 1e-10.
    Source: Arjovsky, Shah & Bengio 2016, "Unitary evolution recurrent neural networks", equations 4
    and 8; they learn h_0, we start from zeros.

    Example:
        >>> import torch
        >>> cell = Unitary(3, 5)
        >>> y, (real, imaginary) = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, real.shape
        (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    """

    multiplies = False
    vectors = 2

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__(in_size, size)
        self.weight_x, _ = input_weights(in_size, size, gates=2)
        self.weight_o, self.bias_o = input_weights(2 * size, size, gates=1)
        self.angles = nn.Parameter(torch.empty(3, size).uniform_(-math.pi, math.pi))
        self.mirrors = nn.Parameter(torch.empty(2, 2, size).uniform_(-1, 1))  # of R_1, R_2: Re v, Im v
        self.bias = nn.Parameter(torch.zeros(size))
        self.permutation: Tensor
        self.register_buffer("permutation", torch.randperm(size))

    def shown(self, state: tuple[Tensor, Tensor]) -> Tensor:
        """V [Re h; Im h] + d."""
        return linear(torch.cat(state, -1), self.weight_o, self.bias_o)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        wide = torch.promote_types(self.bias.dtype, torch.float32)  # complex numbers need at least float32
        real, imaginary = linear(x, self.weight_x).to(wide).chunk(2, -1)
        turned = self.turned(torch.complex(*(part.to(wide) for part in state)))
        real, imaginary = real + turned.real, imaginary + turned.imag
        length = (real.square() + imaginary.square() + EPSILON).sqrt()
        scale = torch.relu(length + self.bias) / length
        state = ((real * scale).to(self.bias.dtype), (imaginary * scale).to(self.bias.dtype))
        y = self.shown(state)
        record_all(hidden=y)
        return y, state

    def turned(self, h: Tensor) -> Tensor:
        """W h for complex h [B, H]."""
        angles = self.angles.to(h.real.dtype)
        first, second, third = torch.polar(torch.ones_like(angles), angles)
        h = torch.fft.fft(first * h, norm="ortho")
        h = self._mirrored(h, 0)[:, self.permutation]
        h = torch.fft.ifft(second * h, norm="ortho")
        return third * self._mirrored(h, 1)

    def _mirrored(self, h: Tensor, which: int) -> Tensor:
        """h - 2 v (v* h) / |v|^2."""
        mirror = self.mirrors[which].to(h.real.dtype)
        v = torch.complex(mirror[0], mirror[1])
        along = (h * v.conj()).sum(-1, keepdim=True)
        return h - along * v * (2 / mirror.square().sum())
