"""The non-local block, in which every place of an image or a clip attends to every other, and its encoder."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from weft import masks
from weft.nn.attention import masked_softmax
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Linear
from weft.probe import record, watching
from weft.setting_types import Count, Size
from weft.shapes import check_choice

Pairwise = Literal["gaussian", "embedded", "dot", "concatenation"]


class NonLocal(nn.Module):
    """Z = X + W_z y,  y_i = (1 / C) sum_j f(x_i, x_j) W_g x_j, over all places of an image or a clip.

    gaussian:       f = exp(x_i^T x_j), C their sum (a softmax)
    embedded:       f = exp((W_theta x_i)^T W_phi x_j), likewise; A = (X W_theta^T)(X W_phi^T)^T
    dot:            f = (W_theta x_i)^T W_phi x_j, C the number of places
    concatenation:  f = ReLU(w_f^T [W_theta x_i; W_phi x_j]), C the number of places

    W_z starts at zero, so a new block is the identity and can be inserted into a trained network.

    Args:
        size: C, features of a place.
        inner: features of theta, phi and g; half of C by default.
        pairwise: f.
        scaled: divide the energies of the two softmax forms by the square root of the number of features
            compared.

    Raises:
        ConfigError: an unknown `pairwise`.

    Source: Wang, Girshick, Gupta & He 2018, eq. 1-6; their 1 x 1 convolutions are linear layers here.

    Example:
        >>> picture = torch.randn(2, 5, 7, 6)  # rows, height, width, features
        >>> torch.equal(NonLocal(6)(picture), picture)
        True
    """

    def __init__(
        self, size: int, *, inner: int | None = None, pairwise: Pairwise = "embedded", scaled: bool = False
    ) -> None:
        super().__init__()
        check_choice("pairwise", pairwise, Pairwise)
        inner = inner or max(1, size // 2)
        self.pairwise = pairwise
        self.scale = 1 / math.sqrt(size if pairwise == "gaussian" else inner) if scaled else 1.0
        if pairwise != "gaussian":
            self.theta = Linear(size, inner, bias=False)
            self.phi = Linear(size, inner, bias=False)
        if pairwise == "concatenation":
            self.joint = nn.Parameter(torch.randn(2 * inner) * (2 * inner) ** -0.5)
        self.g = Linear(size, inner, bias=False)
        self.out = Linear(inner, size, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x [B, .., C] (for example [B, height, width, C] or [B, time, height, width, C]) to the same.

        Args:
            x: features last.
            mask: [B, ..] bool, True = real; None without padding.
        """
        places = x.flatten(1, -2)  # [B, N, C]
        real = places.new_ones(places.shape[:2], dtype=torch.bool) if mask is None else mask.flatten(1)
        weights = self._weights(places, real)
        if watching():
            record("non_local", weights)
        y = weights @ self.g(places)
        return x + self.out(y).view(x.shape)

    def _weights(self, x: Tensor, real: Tensor) -> Tensor:
        """f / C, [B, N, N]."""
        if self.pairwise == "gaussian":
            return masked_softmax(x @ x.transpose(-1, -2) * self.scale, real[:, None])
        theta, phi = self.theta(x), self.phi(x)
        if self.pairwise == "embedded":
            return masked_softmax(theta @ phi.transpose(-1, -2) * self.scale, real[:, None])
        if self.pairwise == "dot":
            f = theta @ phi.transpose(-1, -2)
        else:
            first, second = self.joint.to(theta.dtype).chunk(2)
            f = torch.relu((theta @ first)[:, :, None] + (phi @ second)[:, None])
        return f * real[:, None] / real.sum(1).clamp(min=1)[:, None, None]


class NonLocalEncoder(Encoder):
    """Stacked blocks Z = X + W_z y(X); the summary is the mean.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: C, the width.
        num_layers: number of blocks.
        inner, pairwise, scaled: see `NonLocal`.

    Source: Wang et al. 2018.

    Example:
        >>> import torch
        >>> encoder = NonLocalEncoder(5, size=6)
        >>> encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0).states.shape  # [B, S, D]
        torch.Size([2, 7, 6])
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_layers: Count = 1,
        inner: int | None = None,
        pairwise: Pairwise = "embedded",
        scaled: bool = False,
    ) -> None:
        super().__init__(in_size)
        self.size = size
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.blocks = nn.ModuleList(
            NonLocal(size, inner=inner, pairwise=pairwise, scaled=scaled) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        x = self.project(x)
        for block in self.blocks:
            x = block(x, mask)
        return Memory(x, mask, masks.mean(x, mask))
