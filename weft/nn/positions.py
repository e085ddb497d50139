"""Position encodings added to embeddings or concatenated with them.

For those used inside attention (rotary, ALiBi, relative) see distances.py. `positions_of` and `distance_of`
build both from a recipe's setting.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError
from weft.masks import static
from weft.nn.distances import UNSCALED, Alibi, Distance, Relative, Rotary, Scaling
from weft.nn.ops import Linear
from weft.probe import exporting
from weft.shapes import check_choice

TABLE = 512  # precomputed positions; later ones are computed when needed


def sinusoid(
    positions: Tensor, size: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(pos / base^(2i/d)).

    Args:
        positions: [..] integers from 0.
        size: d.
        base: the base in the formula.
        dtype: of the angles and of the result; in float32 an angle of 1000 has an error of 1e-4.

    Returns:
        [.., d].

    Source: Vaswani et al. 2017, section 3.5.

    Example:
        >>> [round(v, 2) for v in sinusoid(torch.tensor(3), 4, base=100.0).tolist()]
        [0.14, -0.99, 0.3, 0.96]
    """
    half = torch.arange((size + 1) // 2, device=positions.device, dtype=dtype)
    angle = positions.to(dtype)[..., None] * torch.exp(half * (-2 * math.log(base) / size))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :size]


Positions = Literal["sinusoidal", "concatenated", "learned", "rotary", "alibi", "relative", "none"]


def positions_of(
    kind: Positions, size: int, max_length: int, *, base: float = 10000.0
) -> "Sinusoidal | Concatenated | Learned | Nowhere":
    """The encoding at the input of a network; `max_length` is the number of learned positions."""
    check_choice("positions", kind, Positions)
    if kind == "sinusoidal":
        return Sinusoidal(size, base=base)
    if kind == "concatenated":
        return Concatenated(size, base=base)
    return Learned(size, max_length=max_length) if kind == "learned" else Nowhere()


def distance_of(
    kind: Positions,
    head_size: int,
    num_heads: int,
    *,
    both_ways: bool,
    base: float = 10000.0,
    scaling: Scaling = UNSCALED,
) -> Distance:
    """The term inside self-attention, for the same setting as `positions_of`."""
    check_choice("positions", kind, Positions)
    if kind == "rotary":
        return Rotary(head_size, base=base, scaling=scaling)
    if scaling != UNSCALED:
        raise ConfigError(f"position_scaling: needs positions: rotary, got {kind}; leave one of them out")
    if kind == "alibi":
        return Alibi(num_heads)
    return Relative(num_heads, both_ways=both_ways) if kind == "relative" else Distance()


def counted(first: int, stop: int, like: Tensor) -> Tensor | range:
    """The positions first .. stop - 1; a tensor in an exported graph, where a range would fix the length."""
    return torch.arange(first, stop, device=like.device) if exporting() else range(first, stop)


def most_positions(part: nn.Module) -> int | None:
    """The longest sequence for which a part of a model has position vectors; None for no limit."""
    tables = [one.table.num_embeddings for one in part.modules() if isinstance(one, Learned)]
    return min(tables, default=None)


def added(
    encoding: "Sinusoidal | Concatenated | Learned | Nowhere", first: int, count: int, like: Tensor
) -> Tensor | None:
    """What an encoding adds at `count` positions, [count, D]; None if it adds nothing fixed or has fewer."""
    if isinstance(encoding, Sinusoidal) and first + count <= TABLE:
        return encoding.table[first : first + count].to(like.dtype)
    most = most_positions(encoding)
    if isinstance(encoding, Concatenated) or (most is not None and first + count > most):
        return None
    nothing = torch.zeros(1, count, like.shape[-1], dtype=like.dtype, device=like.device)
    return encoding(nothing, range(first, first + count))[0]  # type: ignore[no-any-return]


def add_at(encoding: nn.Module, x: Tensor, at: Tensor, most: int) -> Tensor:
    """x [N, T, D] with what an encoding adds at positions [N, T], all below `most`; no value is read."""
    if isinstance(encoding, Sinusoidal) and most <= TABLE:
        return x + encoding.table[at].to(x.dtype)
    if isinstance(encoding, Learned):
        return x + encoding.table(at)
    return encoding(x, at)  # type: ignore[no-any-return]


class Nowhere(nn.Module):
    """Adds no position encoding."""

    def forward(self, x: Tensor, positions: Tensor | range) -> Tensor:
        """x itself."""
        return x


class Sinusoidal(nn.Module):
    """Adds `sinusoid` to [B, T, D]; has no parameters and no maximum length.

    Args:
        size: D.
        base: n of the formula.

    Example:
        >>> import torch
        >>> Sinusoidal(4)(torch.zeros(1, 2, 4), range(2))[0, 0].tolist()  # position 0: sines 0, cosines 1
        [0.0, 1.0, 0.0, 1.0]
    """

    table: Tensor

    def __init__(self, size: int, *, base: float = 10000.0) -> None:
        super().__init__()
        self.size = size
        self.base = base
        # Precomputed, because in a search the formula took as long as a layer at every step.
        table = sinusoid(torch.arange(TABLE), size, base, dtype=torch.float64)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, positions: Tensor | range) -> Tensor:
        """x [B, T, D], positions [T] or [B, T], or a range of T."""
        if isinstance(positions, range):
            if positions.stop <= TABLE:
                return x + self.table[positions.start : positions.stop].to(x.dtype)
            positions = torch.arange(positions.start, positions.stop, device=x.device)
        dtype = torch.promote_types(x.dtype, torch.float32)
        return x + sinusoid(positions, self.size, self.base, dtype=dtype).to(x.dtype)


class Concatenated(nn.Module):
    """W [x; PE] + b: the sinusoid concatenated with the features and projected back to D.

    Args:
        size: D, of x and of the sinusoid.
        base: n of the formula.

    Example:
        >>> import torch
        >>> Concatenated(4)(torch.zeros(2, 3, 4), range(3)).shape  # [B, T, D]
        torch.Size([2, 3, 4])
    """

    def __init__(self, size: int, *, base: float = 10000.0) -> None:
        super().__init__()
        self.sinusoidal = Sinusoidal(size, base=base)
        self.project = Linear(2 * size, size)

    def forward(self, x: Tensor, positions: Tensor | range) -> Tensor:
        """x [B, T, D], positions [T] or [B, T], or a range of T."""
        encoding = self.sinusoidal(torch.zeros_like(x), positions)
        return self.project(torch.cat([x, encoding], -1))


class Learned(nn.Module):
    """Adds a learned vector for each position.

    Args:
        size: D.
        max_length: number of positions.

    Example:
        >>> import torch
        >>> Learned(4, max_length=10)(torch.zeros(2, 3, 4), range(3)).shape  # [B, T, D]
        torch.Size([2, 3, 4])
    """

    def __init__(self, size: int, *, max_length: int = 1024) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, size)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, x: Tensor, positions: Tensor | range) -> Tensor:
        """x [B, T, D], positions [T] or [B, T], or a range of T.

        Raises:
            ShapeError: a position is max_length or more.
        """
        if exporting():  # the program that runs the graph checks the length
            return x + self.table(positions)
        if isinstance(positions, range):
            last = positions.stop - 1
        else:  # a recorded graph reads no value
            last = int(positions.max()) if x.shape[1] and not static() else -1
        if last >= self.table.num_embeddings:
            raise ShapeError(
                f"expected at most {self.table.num_embeddings} positions, got {last + 1}; "
                "shorten the text, or train a model with a larger max_length"
            )
        if isinstance(positions, range):
            return x + self.table.weight[positions.start : positions.stop]
        return x + self.table(positions)
