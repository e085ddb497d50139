"""A recipe's section `model` for the memory problems: an encoder, and a pool for sums."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from weft.data.memory_problems import NUM_SIGNS
from weft.errors import ConfigError
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.point import Point
from weft.nn.ops import Linear
from weft.nn.pools import Pool, Summary
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.problems import PROBLEMS


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """The model that remembers.

    Args:
        encoder: a part of nn/encoders; it reads the sequence.
        pool: a part of nn/pools.py; it makes the vector from which the sum is computed. The other problems
            do not use it.
        embedding: features of a symbol, or of a number with its mark; 0 feeds number and mark unchanged.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    pool: Callable[..., Pool] = Summary
    embedding: int = 0

    def __post_init__(self) -> None:
        if self.embedding < 0:
            raise ConfigError(f"embedding: expected at least 0, got {self.embedding}")

    def build(self, data: MemoryData) -> Labeller:
        """A new model."""
        if data.problem != "adding":
            signs = len(PROBLEMS[data.problem].names(data.symbols))
            size = self.embedding or signs
            encoder = self.encoder(size)
            return Labeller(Tokens(signs, size), encoder, Categorical(encoder.size, NUM_SIGNS))
        embed = Linear(2, self.embedding) if self.embedding else nn.Identity()
        encoder = self.encoder(self.embedding or 2)
        pool = self.pool(encoder.size)
        return Labeller(embed, encoder, Point(pool.size), pool=pool)
