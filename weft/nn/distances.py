"""Relative positions used inside attention: rotary positions and distance biases.

For encodings added to embeddings see positions.py. A `Distance` is called once for all layers; the `Order`
that it returns rotates queries and keys, or is added to their energies.
Read next: attention.py, which uses an Order.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, ShapeError

Kind = Literal["none", "linear", "llama3", "yarn"]


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How rotary positions are slowed down: a recipe's `position_scaling`.

    Args:
        kind: none; linear, all by `factor`; llama3 and yarn, slow ones by `factor`, fast ones not.
        factor: by which positions are divided.
        length: of the texts in the first training.
        low, high: turns within that length from which (llama3) speeds are divided less, and not at all.
        slow, fast: the same turns of yarn.
        whole: whether yarn rounds the places between which it goes over from one to the other.
        attention: factor of rotated queries and keys (yarn).

    Source: Chen et al. 2023 (linear); Peng et al. 2024 (yarn), section 3; Grattafiori et al. 2024 (llama3).
    """

    kind: Kind = "none"
    factor: float = 1.0
    length: int = 8192
    low: float = 1.0
    high: float = 4.0
    slow: float = 1.0
    fast: float = 32.0
    whole: bool = True
    attention: float = 1.0

    def __post_init__(self) -> None:
        for name in ("factor", "length", "low", "high", "slow", "fast", "attention"):
            if not 0 < getattr(self, name) < 1e12:
                raise ConfigError(
                    f"position_scaling.{name}: expected a positive number, got {getattr(self, name)}"
                )
        if self.low >= self.high or self.slow >= self.fast:
            raise ConfigError(
                "position_scaling: expected low below high and slow below fast, got "
                f"{self.low:g}, {self.high:g}, {self.slow:g}, {self.fast:g}"
            )


UNSCALED = Scaling()


class Order(NamedTuple):
    """Positional terms for the queries and keys of self-attention."""

    turn: tuple[Tensor, Tensor] | None = (
        None  # cos and sin of the angles of new positions, [B or 1, 1, T, K/2]
    )
    bias: Tensor | None = None  # added to energies, [B or 1, H, T, S]


NO_ORDER = Order()
Where = Tensor | range


class Distance(nn.Module):
    """No positional information; subclasses override `forward`.

    Example:
        >>> import torch
        >>> from weft.nn import Distance
        >>> Distance()(range(3), range(5), torch.zeros(1)).bias is None  # T queries, S keys
        True
    """

    def forward(self, queries: Where, keys: Where, like: Tensor) -> Order:
        """Terms for queries at T or [B, T] and keys at S or [B, S]; `like` gives device and dtype."""
        return NO_ORDER


class Rotary(Distance):
    """q_t^T k_s depends only on t - s: features 2i, 2i+1 at position t are rotated by t / base^(2i/K).

    Args:
        head_size: K, features of a query; even.
        base: n of the formula.
        scaling: for texts longer than in training.

    Raises:
        ShapeError: the head size is odd.

    Source: Su et al. 2021 (RoFormer), eq. 15 and 34.

    Example:
        >>> import torch
        >>> from weft.nn.distances import turned
        >>> q, k = torch.ones(1, 1, 9, 4), torch.ones(1, 1, 9, 4)  # [B, H, T, K]
        >>> turn = Rotary(4)(range(9), range(9), q).turn
        >>> energy = (turned(q, turn) @ turned(k, turn).mT)[0, 0]  # [T, S]
        >>> bool(torch.isclose(energy[2, 0], energy[8, 6]))  # both two apart
        True
    """

    def __init__(self, head_size: int, *, base: float = 10000.0, scaling: Scaling = UNSCALED) -> None:
        super().__init__()
        if head_size % 2:
            raise ShapeError(
                f"rotary positions need an even number of features per head, got {head_size}; "
                "change the width or num_heads"
            )
        self.head_size = head_size
        self.base = base
        self.scaling = scaling

    def forward(self, queries: Where, keys: Where, like: Tensor) -> Order:
        """Rotations of new positions only; cached keys are already rotated."""
        speed = speeds(self.head_size, self.base, self.scaling, like)
        angle = _tensor(queries, like).to(torch.float64)[..., None] * speed  # [T, K/2] or [B, T, K/2]
        angle = angle[None, None] if angle.dim() == 2 else angle[:, None]
        by = self.scaling.attention
        return Order(turn=((by * angle.cos()).to(like.dtype), (by * angle.sin()).to(like.dtype)))


def turned(x: Tensor, turn: tuple[Tensor, Tensor] | None) -> Tensor:
    """Rotate each pair of features (a, b) of x [B, H, T, K] to (a cos - b sin, a sin + b cos).

    With fewer angles than pairs, the features after the last angle stay as they are.

    Example:
        >>> quarter = torch.zeros(1, 1), torch.ones(1, 1)  # cos, sin of 90 degrees: [T, K/2]
        >>> turned(torch.tensor([[[[1.0, 0.0]]]]), quarter).tolist()  # [B, H, T, K]
        [[[[0.0, 1.0]]]]
    """
    if turn is None:
        return x
    cos, sin = (each.to(x.dtype) for each in turn)
    x, rest = x[..., : 2 * cos.shape[-1]], x[..., 2 * cos.shape[-1] :]
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    y = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    return torch.cat([y, rest], -1) if rest.shape[-1] else y


class Alibi(Distance):
    """Add -m_h |t - s| with m_h = 2^(-8 h / H) to the energy of head h, which favours nearby positions.

    In an encoder the bias is the same to the left and to the right. If H is not a power of two, take the
    slopes for the next smaller power, then every other slope for twice that power.

    Args:
        num_heads: H.

    Source: Press, Smith & Lewis 2022, section 3; the slopes for other H from their code.

    Example:
        >>> import torch
        >>> Alibi(2)(range(1), range(3), torch.zeros(1)).bias[0, :, 0].tolist()  # [H, S]
        [[-0.0, -0.0625, -0.125], [-0.0, -0.00390625, -0.0078125]]
    """

    slopes: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        power = 2 ** int(math.log2(num_heads))
        slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
        slopes += [2 ** (-8 * (2 * h + 1) / (2 * power)) for h in range(num_heads - power)]
        self.register_buffer("slopes", torch.tensor(slopes, dtype=torch.float64), persistent=False)

    def forward(self, queries: Where, keys: Where, like: Tensor) -> Order:
        far = apart(queries, keys, like).abs()[:, None].to(like.dtype)  # [B or 1, 1, T, S]
        return Order(bias=-self.slopes.to(like.dtype)[:, None, None] * far)


class Relative(Distance):
    """Add a learned bias per head and distance bucket to the energy, shared by all layers.

    Half of the buckets cover one distance each; the widths of the others grow logarithmically up to
    `farthest`.

    Args:
        num_heads: H.
        both_ways: distinguish left and right, for encoders; decoders see only the left.
        buckets: number of buckets.
        farthest: distances from this value on share the last bucket.

    Source: Raffel et al. 2020 (T5), section 2.1; the buckets are from their code.

    Example:
        >>> import torch
        >>> Relative(3, both_ways=True)(range(4), range(5), torch.zeros(1)).bias.shape  # [1, H, T, S]
        torch.Size([1, 3, 4, 5])
    """

    bucket_of: Tensor

    def __init__(self, num_heads: int, *, both_ways: bool, buckets: int = 32, farthest: int = 128) -> None:
        super().__init__()
        self.both_ways = both_ways
        self.buckets = buckets
        self.farthest = farthest
        self.table = nn.Embedding(buckets, num_heads)
        nn.init.normal_(self.table.weight, std=0.02)
        # Looked up, because another program's logarithm may round a distance into the next bucket.
        self.register_buffer("bucket_of", self._buckets(torch.arange(farthest + 1)), persistent=False)

    def forward(self, queries: Where, keys: Where, like: Tensor) -> Order:
        bucket = self.bucket(apart(queries, keys, like))
        return Order(bias=self.table(bucket).permute(0, 3, 1, 2))

    def bucket(self, apart: Tensor) -> Tensor:
        """The bucket of each distance, key position minus query position."""
        count, first = self.buckets, torch.zeros_like(apart)
        if self.both_ways:
            count //= 2
            first = (apart > 0) * count
            apart = apart.abs()
        else:
            apart = (-apart).clamp(min=0)
        return first + self.bucket_of[apart.clamp(max=self.farthest)]

    def _buckets(self, apart: Tensor) -> Tensor:
        """The bucket of each distance to one side."""
        count = self.buckets // 2 if self.both_ways else self.buckets
        exact = count // 2
        growth = torch.log(apart.clamp(min=1).double() / exact) / math.log(self.farthest / exact)
        later = (exact + (growth * (count - exact)).long()).clamp(max=count - 1)
        return torch.where(apart < exact, apart, later)


def _tensor(positions: Where, like: Tensor) -> Tensor:
    if isinstance(positions, range):
        return torch.arange(positions.start, positions.stop, device=like.device)
    return positions


def apart(queries: Where, keys: Where, like: Tensor) -> Tensor:
    """Key position minus query position, [B or 1, T, S]."""
    apart = _tensor(keys, like)[..., None, :] - _tensor(queries, like)[..., :, None]
    return apart if apart.dim() == 3 else apart[None]


def speeds(size: int, base: float, how: Scaling, like: Tensor) -> Tensor:
    """[K/2] the angle per position of each pair of K features, in float64."""
    pair = torch.arange(size // 2, device=like.device, dtype=torch.float64)
    speed = torch.exp(pair * (-2 * math.log(base) / size))
    if how.kind == "none":
        return speed
    if how.kind == "linear":
        return speed / how.factor
    if how.kind == "llama3":
        turns = how.length * speed / (2 * math.pi)
        kept = ((turns - how.low) / (how.high - how.low)).clamp(0, 1)
    else:
        kept = 1 - _ramp(size, base, how, pair)
    return speed * kept + speed / how.factor * (1 - kept)


def _ramp(size: int, base: float, how: Scaling, pair: Tensor) -> Tensor:
    """0 for pairs that turn more often than `fast` within the length, 1 for less often than `slow`."""
    begin, end = (
        size * math.log(how.length / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (how.fast, how.slow)
    )
    if how.whole:
        begin, end = math.floor(begin), math.ceil(end)
    begin, end = max(begin, 0), min(end, size - 1)
    return ((pair - begin) / (end - begin + 0.001 * (begin == end))).clamp(0, 1)
