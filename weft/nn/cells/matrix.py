"""The contract of a cell whose state is one matrix per head; a new one writes `read` and `write`.

Read next: retention.py, the simplest one; ../kernels/matrix.py, the recurrence itself.
"""

from abc import abstractmethod
from math import ceil

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.ops import Decayed, MatrixRecurrence, widened
from weft.probe import exporting, record, record_all, watching
from weft.setting_types import Count, Size
from weft.tree import State

Extra = tuple[Tensor, ...]


class MatrixCell(Cell):
    """A cell that writes values under keys into a matrix S per head and reads it with a query.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: number of matrices.
        key_size: K, rows of each matrix; 0 = size / num_heads, rounded up.
        value_size: V, columns of each matrix; 0 = size / num_heads, rounded up.

    The state is (y, S, ...): the last output [B, H], S [B, heads, K, V], and what else a cell remembers. A
    bridge writes and reads S under one fixed key, all of whose entries are equal.

    Raises:
        ConfigError: a number below 1.

    Example:
        >>> import torch
        >>> from weft.nn.cells import Retention
        >>> cell = Retention(3, 8)
        >>> y, state = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape  # [B, T, H]
        torch.Size([2, 7, 8])
    """

    multiplies = False

    def __init__(
        self, in_size: int, size: int, *, num_heads: Count, key_size: Size = 0, value_size: Size = 0
    ) -> None:
        super().__init__(in_size, size)
        if num_heads < 1 or key_size < 0 or value_size < 0:
            raise ConfigError(
                "expected num_heads of at least 1, and sizes of keys and values of at least 1, or 0 for "
                f"size / num_heads; got num_heads {num_heads}, key_size {key_size}, value_size {value_size}"
            )
        self.heads = num_heads
        self.key_size = key_size or ceil(size / num_heads)
        self.value_size = value_size or ceil(size / num_heads)
        self.columns = self.value_size  # of S

    @abstractmethod
    def read(self, x: Tensor, before: Extra, mask: Tensor | None) -> tuple[MatrixRecurrence, Extra, Extra]:
        """What the inputs ask of the matrices.

        Args:
            x: [B, T, D].
            before: the state beyond y and S, before the first step.
            mask: [B, T] bool, real positions first, or None.

        Returns:
            The recurrence; the state beyond y and S after the last real step; and what `write` needs.
        """

    def write(self, o: Tensor, rest: Extra) -> Tensor:
        """y [B, T, H] from what the queries found, o [B, T, heads, V], and the last result of `read`.

        By default the norm of each head, then the projection.
        """
        return self.out(self.norm(o).flatten(-2))  # type: ignore[no-any-return]

    def show(self, asked: MatrixRecurrence, rest: Extra) -> None:
        """Record the decays of one step, and what multiplies S where that is a matrix.

        Args:
            asked: the recurrence.
            rest: what `write` needs.
        """
        record("forget_gate", asked.decay[:, 0].exp().flatten(1))
        if not isinstance(asked, Decayed):
            record("transition", asked.transition()[:, 0])
            record("written", asked.key[:, 0])

    def extra(self, like: Tensor) -> Extra:
        """The initial state beyond y and S, for the rows of `like` [B, ..]; none by default."""
        return ()

    def start(self, like: Tensor) -> State:
        """(y, S, ...), zeros unless a cell says otherwise."""
        rows = like.shape[0]
        matrix = like.new_zeros(rows, self.heads, self.key_size, self.columns)
        return (like.new_zeros(rows, self.size), matrix, *self.extra(like))

    def carried(self, state: State) -> tuple[Tensor]:
        """What S gives for the fixed key, [B, heads V]."""
        return ((state[1].sum(-2) / self.key_size**0.5).flatten(1),)

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """The initial state with the carried values written under the fixed key."""
        y, matrix, *extra = self.start(carried[0])
        written = carried[0].unflatten(1, (self.heads, 1, -1)) / self.key_size**0.5
        return (y, matrix + written, *extra)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = self._through(x[:, None], state, None, at_once=False)
        record_all(hidden=y[:, 0], state=after[1])
        return y[:, 0], after

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps in chunks of matrix products."""
        if watching() or exporting():
            return super().run(x, state, mask)
        y, after = self._through(x, state, mask, at_once=True)
        return y if mask is None else y * mask[..., None], after

    def _through(
        self, x: Tensor, state: State, mask: Tensor | None, *, at_once: bool
    ) -> tuple[Tensor, State]:
        h, matrix, *before = state
        asked, extra, rest = self.read(x, tuple(before), mask)
        if watching():
            self.show(asked, rest)
        if mask is not None:
            asked = asked.masked(mask)
        kind = x.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        with torch.autocast(kind, enabled=False):
            if at_once:
                o, after = asked.all(matrix, dtype)
            else:
                asked, wide = widened(asked, matrix)
                o, after = asked.one(wide)
        y = self.write(o.to(x.dtype), rest)
        return y, (last_of(y, h, mask), after.to(matrix.dtype), *extra)


def last_of(each: Tensor, before: Tensor, mask: Tensor | None) -> Tensor:
    """Of values [B, T, ..] after every step, and one before the first, that after the last real step."""
    if mask is None:
        return each[:, -1]
    lengths = mask.sum(1)
    found = each[torch.arange(each.shape[0], device=mask.device), (lengths - 1).clamp(min=0)]
    return torch.where((lengths > 0).view(-1, *[1] * (before.dim() - 1)), found, before)
