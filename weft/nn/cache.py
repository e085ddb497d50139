"""The key-value cache of a Transformer that writes: one for each source, shared by its hypotheses.

Each position that a hypothesis writes becomes an entry of its source's cache, and stays where it is. What
changes when a beam chooses its next hypotheses is only each one's path: [N, P], which entries are its own,
in order. So a step of a search appends W entries and reorders W P whole numbers, where a cache for each
hypothesis would copy all its keys and values; attention masks the entries of the others.

Entries lie in a buffer with room for more. Appending writes behind what is there, if that place is still
free (another state may have gone on from here already: `filled` knows), and copies to a larger buffer
otherwise; with gradients, and where a graph is exported, it always copies. A state is never changed by what
comes after it. Read next: decoders/transformer.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from weft.nn.distances import Order

ROOM = 32
"""Entries that a new buffer has room for at least; a full one gives way to one twice as large."""


class Written(NamedTuple):
    """Keys and values of everything that was written after a source."""

    layers: tuple[Tensor, ...]  # each [B, 2, H, E, K]: keys, then values
    filled: Tensor  # [B] int64, entries of the buffer that are in use, by this state or by another
    per_source = True

    @property
    def sources(self) -> int:
        """B."""
        return len(self.filled)

    @property
    def entries(self) -> int:
        """E, of each source."""
        return self.layers[0].shape[3]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> Tensor:
        """A layer's entries with those of new positions behind them.

        Args:
            layer: which.
            keys, values: [B, H, W T, K] of T new positions of W hypotheses.

        Returns:
            [B, 2, H, E + W T, K].
        """
        old = self.layers[layer]
        entries, added = old.shape[3], keys.shape[2]
        if _must_copy() or (not entries and added > 1):  # a first call of many: training, scoring, a prompt
            new = torch.stack([keys, values], 1)
            return torch.cat([old, new], 3) if entries else new
        whole = self._with_room(old, added)
        whole[:, 0, :, entries:] = keys
        whole[:, 1, :, entries:] = values
        return whole

    def opened(self, added: int) -> tuple[Tensor, ...]:
        """Every layer's entries with room for new ones behind them, [B, 2, H, E + n, K], not yet written.

        Args:
            added: n, entries a source.
        """
        return tuple(self._with_room(layer, added) for layer in self.layers)

    def grown(self, layers: tuple[Tensor, ...]) -> "Written":
        """This with the layers that `append` made."""
        entries = layers[0].shape[3]
        if self.entries and not _must_copy() and layers[0].data_ptr() == self.layers[0].data_ptr():
            return Written(layers, self.filled.fill_(entries))
        return Written(layers, torch.full_like(self.filled, entries))

    def _with_room(self, old: Tensor, added: int) -> Tensor:
        """[B, 2, H, E + n, K], the first E as they are: in their own buffer if there is room behind them."""
        sources, two, heads, entries, width = old.shape
        need = entries + added
        if entries and need <= old.stride(2) // width and int(self.filled[0]) == entries:
            return old.as_strided((sources, two, heads, need, width), old.stride())
        room = max(2 * need, ROOM)
        whole = old.new_empty(sources, two, heads, room, width)[:, :, :, :need]
        whole[:, :, :, :entries] = old
        return whole


def nothing_written(num_layers: int, empty: Tensor) -> Written:
    """A cache without entries; `empty`: [B, 2, H, 0, K]."""
    return Written((empty,) * num_layers, torch.zeros(len(empty), dtype=torch.int64, device=empty.device))


def longer_path(
    path: Tensor | None, rows: int, width: int, past: int, steps: int, entries: int, device: torch.device
) -> Tensor:
    """The entries of P + T positions, [N, P + T], when each hypothesis has written T more.

    Args:
        path: [N, P]; None where entries were positions.
        rows, width: N and W.
        past, steps: P and T.
        entries: E, before.
    """
    if path is None:
        path = torch.arange(past, device=device).expand(rows, past)
    new = torch.arange(entries, entries + width * steps, device=device).view(width, steps)
    return torch.cat([path, new.repeat(rows // width, 1)], 1)


def seen_entries(seen: Tensor, path: Tensor, width: int, entries: int) -> Tensor:
    """Which positions each query may see, [N, 1, T, P], as which entries: [B, 1, W T, E] bool."""
    steps = seen.shape[2]
    mask = torch.zeros(len(path), steps, entries, dtype=torch.bool, device=path.device)
    places = path[:, None].expand(-1, steps, -1)
    mask = mask.scatter(2, places, seen[:, 0].expand(len(path), -1, -1))
    return mask.view(-1, 1, width * steps, entries)


def order_of_entries(order: Order, path: Tensor, width: int, steps: int, entries: int) -> Order:
    """Where the queries of W hypotheses, beside each other, and the entries of their source stand."""
    turn, bias = order
    if turn is not None:
        cos, sin = (
            each.expand(len(path), -1, -1, -1).reshape(-1, 1, width * steps, each.shape[3]) for each in turn
        )
        turn = cos, sin
    if bias is not None:
        heads = bias.shape[1]
        places = path[:, None, None].expand(-1, heads, steps, -1)
        whole = bias.new_zeros(len(path), heads, steps, entries).scatter(3, places, bias.expand_as(places))
        bias = whole.view(-1, width, heads, steps, entries).transpose(1, 2).flatten(2, 3)
    return Order(turn, bias)


def _must_copy() -> bool:
    """Whether writing into a buffer would lose a gradient, or has no place in a graph."""
    return torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing()
