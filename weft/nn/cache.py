"""The key-value cache of a Transformer decoder: one per source, shared by its hypotheses.

Each position written by a hypothesis becomes an entry of its source's cache and never moves. When a beam
selects its next hypotheses, only their paths change: [N, P], the entries of each hypothesis in order. So a
search step appends W entries and reorders W P integers, whereas a cache per hypothesis would copy all its
keys and values. Attention masks the entries of other hypotheses.

Entries are stored in a buffer with spare capacity. Appending writes after the existing entries if that place
is still free (`filled` tells whether another state has already continued from here), and otherwise copies
to a larger buffer. With gradients, and in an exported graph, it always copies. Later steps never change
an earlier state, except in a search whose steps are captured on a GPU (`roomy`).
Read next: decoders/transformer.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from weft.nn.distances import Order

SOURCE_ROOM = 16
"""Least positions of the sources of a state that never grows; each next length is twice as long."""

SPARE = 8
"""Entries that no hypothesis reads, at the end of a cache that never grows; its paths end there."""

ROOM = 32
"""Minimum capacity of a new buffer, in entries; a full buffer is replaced by one twice as large."""


class KeyValueCache(NamedTuple):
    """Keys and values of all positions written after a source."""

    layers: tuple[Tensor, ...]  # each [B, 2, H, E, K]: keys, then values
    filled: Tensor  # [B] int64, buffer entries in use by this or another state
    time: Tensor | None = None  # [B] int64, positions in use, of a cache that does not grow; see `roomy`
    per_source = True

    @property
    def sources(self) -> int:
        """B, the number of sources."""
        return self.filled.shape[0]

    @property
    def entries(self) -> int:
        """E, the number of entries per source."""
        return self.layers[0].shape[3]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> Tensor:
        """The entries of a layer, then those of T new positions of W hypotheses, [B, H, W T, K] each."""
        old = self.layers[layer]
        entries, added = old.shape[3], keys.shape[2]
        if self.time is not None:
            place = self.filled[:1] + torch.arange(added, device=keys.device)
            old[:, 0].index_copy_(2, place, keys.to(old.dtype))
            old[:, 1].index_copy_(2, place, values.to(old.dtype))
            return old
        if _must_copy() or (not entries and added > 1):  # a first call with several positions
            new = torch.stack([keys, values], 1)
            return torch.cat([old, new], 3) if entries else new
        whole = self._with_room(old, added)
        whole[:, 0, :, entries:] = keys
        whole[:, 1, :, entries:] = values
        return whole

    def opened(self, added: int) -> tuple[Tensor, ...]:
        """All layers' entries with space for new ones after them, [B, 2, H, E + n, K], not yet written."""
        return tuple(self._with_room(layer, added) for layer in self.layers)

    def grown(self, layers: tuple[Tensor, ...]) -> "KeyValueCache":
        """The cache with the layers returned by `append`."""
        entries = layers[0].shape[3]
        if self.entries and not _must_copy() and layers[0].data_ptr() == self.layers[0].data_ptr():
            return KeyValueCache(layers, self.filled.fill_(entries))
        return KeyValueCache(layers, torch.full_like(self.filled, entries))

    def roomy(self, entries: int, dtype: torch.dtype, time: int) -> "KeyValueCache":
        """A cache of so many entries, which steps fill in place without a look at any number."""
        layers = []
        for old in self.layers:
            new = old.new_zeros(*old.shape[:3], entries, old.shape[4], dtype=dtype)
            new[:, :, :, : old.shape[3]] = old
            layers.append(new)
        if self.time is not None:
            return self._replace(layers=tuple(layers))
        used = torch.full_like(self.filled, self.entries)
        return KeyValueCache(tuple(layers), used, torch.full_like(used, time))

    def stepped(self, added: int) -> "KeyValueCache":
        """This cache after a step that wrote so many entries of each source in place."""
        assert self.time is not None
        return self._replace(filled=self.filled + added, time=self.time + 1)

    def _with_room(self, old: Tensor, added: int) -> Tensor:
        """[B, 2, H, E + n, K] with the first E unchanged, in the same buffer if it has space."""
        sources, two, heads, entries, width = old.shape
        need = entries + added
        if entries and need <= old.stride(2) // width and int(self.filled[0]) == entries:
            return old.as_strided((sources, two, heads, need, width), old.stride())
        room = max(2 * need, ROOM)
        whole = old.new_empty(sources, two, heads, room, width)[:, :, :, :need]
        whole[:, :, :, :entries] = old
        return whole


def empty_cache(num_layers: int, empty: Tensor) -> KeyValueCache:
    """A cache without entries; `empty` is [B, 2, H, 0, K]."""
    filled = torch.zeros(empty.shape[0], dtype=torch.int64, device=empty.device)
    return KeyValueCache((empty,) * num_layers, filled)


def longer_path(
    path: Tensor | None, rows: int, width: int, past: int, steps: int, entries: int, device: torch.device
) -> Tensor:
    """The entries of P + T positions, [N, P + T], after each hypothesis wrote T more to `path` [N, P]."""
    if path is None:
        path = torch.arange(past, device=device).expand(rows, past)
    new = torch.arange(entries, entries + width * steps, device=device).view(width, steps)
    return torch.cat([path, new.repeat(rows // width, 1)], 1)


def seen_entries(seen: Tensor, path: Tensor, width: int, entries: int) -> Tensor:
    """Convert a mask over positions [N, 1, T, P] to one over entries [B, 1, W T, E] bool."""
    steps = seen.shape[2]
    mask = torch.zeros(path.shape[0], steps, entries, dtype=torch.bool, device=path.device)
    places = path[:, None].expand(-1, steps, -1)
    mask = mask.scatter(2, places, seen[:, 0].expand(path.shape[0], -1, -1))
    return mask.view(-1, 1, width * steps, entries)


def order_of_entries(order: Order, path: Tensor, width: int, steps: int, entries: int) -> Order:
    """Convert the order of positions to that of the folded queries of W hypotheses and cache entries."""
    turn, bias = order
    if turn is not None:
        cos, sin = (
            each.expand(path.shape[0], -1, -1, -1).reshape(-1, 1, width * steps, each.shape[3])
            for each in turn
        )
        turn = cos, sin
    if bias is not None:
        heads = bias.shape[1]
        places = path[:, None, None].expand(-1, heads, steps, -1)
        whole = bias.new_zeros(path.shape[0], heads, steps, entries).scatter(
            3, places, bias.expand_as(places)
        )
        bias = whole.view(-1, width, heads, steps, entries).transpose(1, 2).flatten(2, 3)
    return Order(turn, bias)


def _must_copy() -> bool:
    """Whether writing into a buffer would lose gradients or cannot be exported."""
    return torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing()
