"""A Transformer decoder with a key-value cache: T steps at once in training, one by one in a search.

Read next: ../cache.py for how the hypotheses of a source share one cache.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import masks
from weft.masks import harmless
from weft.native import WholeStep
from weft.nn.attention import USUAL, Heads, HeadSource
from weft.nn.cache import (
    ROOM,
    SOURCE_ROOM,
    SPARE,
    KeyValueCache,
    empty_cache,
    longer_path,
    order_of_entries,
    seen_entries,
)
from weft.nn.decoders.decoder import Decoder
from weft.nn.distances import UNSCALED, Distance, Order, Scaling
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Ends, Layers, Linear, PastSteps, decoding, transformer
from weft.nn.positions import Positions, add_at, added, counted, distance_of, most_positions, positions_of
from weft.nn.randomness import recomputed
from weft.nn.transformer import GELU_GATED, Activation, Norm, blocks_of, form_of
from weft.probe import exporting
from weft.setting_types import Count, DropoutRate, Size
from weft.tree import doubled


class TransformerState(NamedTuple):
    """The state of a Transformer decoder: the cache of each source, and each hypothesis's path in it."""

    cache: KeyValueCache
    path: Tensor | None  # [N, P] int64, the entry of each position; None if entry numbers equal positions
    mask: Tensor | None  # [N, P] bool, real positions; None without padding
    source: decoding.SourceLayers | None


class TransformerDecoder(Decoder):
    """Causal self-attention, cross-attention to the memory, and a position-wise network.

    Args:
        in_size: features of the input; projected if they differ from the width.
        encoder: its memory is read; None for a language model.
        size, num_layers, num_heads, inner, norm, norm_kind, norm_epsilon, activation, bias, positions,
            position_base, max_length, entry_norm, dropout, attention_dropout, heads: as in
            TransformerEncoder.
        position_scaling: of rotary positions, for texts longer than in training.

    Source: Vaswani et al. 2017.

    Example:
        >>> import torch
        >>> decoder = TransformerDecoder(5, size=6, num_layers=1, num_heads=2)  # a language model
        >>> y, state = decoder(torch.zeros(2, 3, 5), decoder.start(None, 2))
        >>> y.shape  # [B, T, D]
        torch.Size([2, 3, 6])
    """

    converts = True

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        size: Size = 256,
        num_layers: Count = 4,
        num_heads: Count = 4,
        inner: int | None = None,
        norm: Norm = "before",
        norm_kind: NormKind = "layer",
        norm_epsilon: float = 1e-5,
        activation: Activation = "relu",
        bias: bool = True,
        positions: Positions = "sinusoidal",
        position_base: float = 10000.0,
        position_scaling: Scaling = UNSCALED,
        max_length: int = 1024,
        entry_norm: bool = False,
        dropout: DropoutRate = 0.1,
        attention_dropout: DropoutRate = 0.0,
        heads: Heads = USUAL,
    ) -> None:
        super().__init__(in_size, encoder)
        self.size = size
        self.num_heads = num_heads
        self.heads = heads
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length, base=position_base)
        self.distance = distance_of(
            positions,
            heads.rotated(size, num_heads),
            num_heads,
            both_ways=False,
            base=position_base,
            scaling=position_scaling,
        )
        # the compiled step of a search has the usual blocks only
        usual = norm != "parallel" and activation not in GELU_GATED
        self.usual = usual and type(self.distance) is Distance and heads == USUAL
        self.entry_norm = norm_of(size, norm_kind, epsilon=norm_epsilon) if entry_norm else nn.Identity()
        self.dropout = Dropout(dropout)
        self.blocks, self.last_norm = blocks_of(
            size,
            num_layers,
            num_heads,
            inner,
            memory_size=None if encoder is None else encoder.size,
            norm=norm,
            norm_kind=norm_kind,
            norm_epsilon=norm_epsilon,
            activation=activation,
            bias=bias,
            dropout=dropout,
            attention_dropout=attention_dropout,
            heads=heads,
        )

        self._parts: list[dict[str, nn.Module]] | None = None  # of the search that is going on

    def compiled(self) -> bool:
        """Whether compiled code runs its search steps in float32 on this machine."""
        return self.usual and decoding.has_compiled_step(self)

    def start(self, memory: Memory | None, rows: int) -> TransformerState:
        """An empty cache, and the source's keys and values for every layer."""
        self._parts = None
        like = self.blocks[0].attention.out.weight
        source = None
        if memory is not None:
            mask = None if masks.full(memory.mask) else memory.mask[:, None, None]
            states = _converted(memory.states, like.dtype)
            source = decoding.SourceLayers(self._sources(states), mask)
        shape = rows, 2, self.heads.shared(self.num_heads), 0, self.heads.width(self.size, self.num_heads)
        none = torch.zeros(shape, dtype=like.dtype, device=like.device)
        cache = empty_cache(len(self.blocks), none)
        return TransformerState(cache, None, None, source)

    def _sources(self, states: Tensor) -> tuple[HeadSource, ...]:
        if self.training or not self.usual or not decoding.suits_whole(states, self.num_heads):
            return tuple(HeadSource(*block.source(states)) for block in self.blocks)
        products = [block.look.key_value for block in self.blocks]
        found = decoding.sources(self, products, states, self.num_heads)
        return tuple(map(HeadSource, found[::2], found[1::2]))

    def forward(
        self, x: Tensor, state: TransformerState, mask: Tensor | None = None
    ) -> tuple[Tensor, TransformerState]:
        """x [N, T, D_in] after the P positions of the state; see Decoder.forward.

        It computes in the weights' dtype and returns the dtype of x.
        """
        dtype, own = x.dtype, self.blocks[0].attention.out.weight.dtype
        y, after = self._run(_converted(harmless(x, mask), own), state, mask)
        return _converted(y, dtype), after

    def _run(
        self, x: Tensor, state: TransformerState, mask: Tensor | None
    ) -> tuple[Tensor, TransformerState]:
        if state.cache.time is not None:
            return self._fixed_step(x, state)
        steps, entries = x.shape[1], state.cache.entries
        path, past = state.path, entries if state.path is None else state.path.shape[1]
        width = 1 if exporting() else x.shape[0] // state.cache.sources
        keep = _joined_mask(state.mask, mask, x.shape[0], past, steps, x.device)  # [N, P + T] or None
        at, whole = counted(past, past + steps, x), counted(0, past + steps, x)
        if keep is not None:  # padding inside the cache does not count as a position
            whole = (keep.cumsum(1) - 1).clamp(min=0)
            at = whole[:, past:]
        x = self.project(x)
        x = self.dropout(self.entry_norm(self.positions(x, at)))
        if keep is None and not self.training and self.usual and decoding.suits(x, self.num_heads):
            return self._compiled(x, state, path, past, width)
        order = self.distance(at, whole, x)
        seen = None  # no mask for one step, a causal mask for a first call with several positions
        if keep is not None or (steps > 1 and past) or path is not None or width > 1:
            seen = masks.causal(steps, past + steps, x.device)
            seen = seen[None, None] if keep is None else (seen & keep[:, None])[:, None]  # [N, 1, T, P + T]
        if path is not None or width > 1:
            path = longer_path(path, x.shape[0], width, past, steps, entries, x.device)  # [N, P + T]
            order = order_of_entries(order, path, width, steps, entries + width * steps)
            seen = seen_entries(seen, path, width, entries + width * steps)  # [B, 1, W T, E]
        y, layers = self._blocks(x, state, seen, order)
        return y, TransformerState(state.cache.grown(layers), path, keep, state.source)

    def _blocks(
        self, x: Tensor, state: TransformerState, seen: Tensor | None, order: Order
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        layers = []
        for layer, block in enumerate(self.blocks):
            source, source_mask = None, None
            if state.source is not None:
                source, source_mask = state.source.layers[layer], state.source.mask
            x, entry = recomputed(block.decode, x, state.cache, layer, seen, source, source_mask, order)
            layers.append(entry)
        return self.last_norm(x), tuple(layers)

    def fixed(self, state: TransformerState, width: int, steps: int) -> tuple[TransformerState, int] | None:
        cache, path, keep, source = state
        past, most = cache.entries if path is None else path.shape[1], most_positions(self)
        if most is not None and past + steps > most:
            return None  # the plain loops say so
        columns = doubled(ROOM, past + 1)
        rows, last = cache.sources * width, width * columns + SPARE - 1
        kind = cache.filled.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else cache.layers[0].dtype
        places = torch.full((rows, columns), last, device=cache.filled.device)
        places[:, :past] = torch.arange(past, device=places.device) if path is None else path
        real = torch.zeros_like(places, dtype=torch.bool)
        real[:, :past] = True if keep is None else keep
        if source is not None and cache.time is None:
            source = _padded(source)
        return TransformerState(cache.roomy(last + 1, dtype, past), places, real, source), columns - past

    def _fixed_step(self, x: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """A step on tensors that never grow: the next position is a number on the device."""
        cache, path, keep, source = state
        assert path is not None and keep is not None and cache.time is not None
        width, entries, column = len(x) // cache.sources, cache.entries, cache.time[:1]
        at = keep.sum(1, keepdim=True)  # [N, 1]; padding does not count as a position
        keep = keep.index_fill(1, column, True)
        new = cache.filled[:1] + torch.arange(width, device=x.device)
        path = path.index_copy(1, column, new.repeat(cache.sources)[:, None])
        whole = (keep.cumsum(1) - 1).clamp(min=0)
        x = self.entry_norm(add_at(self.positions, self.project(x), at, path.shape[1]))
        order = order_of_entries(self.distance(at, whole, x), path, width, 1, entries)
        seen = seen_entries(keep[:, None, None], path, width, entries)
        y, _ = self._blocks(x, TransformerState(cache, path, keep, source), seen, order)
        return y, TransformerState(cache.stepped(width), path, keep, source)

    def _compiled(
        self, x: Tensor, state: TransformerState, path: Tensor | None, past: int, width: int
    ) -> tuple[Tensor, TransformerState]:
        """The rest of `forward` for one position of a search, in one compiled call."""
        entries = state.cache.entries
        if path is not None or width > 1:
            path = longer_path(path, x.shape[0], width, past, 1, entries, x.device)
        layers = state.cache.opened(width)
        form, parts = form_of(self.blocks, self.num_heads), self._all_parts()
        y = decoding.step(self, form, parts, self.last_norm, x, entries, layers, path, state.source)
        return y, TransformerState(state.cache.grown(layers), path, None, state.source)

    def whole_step(self, state: TransformerState, ends: Ends) -> WholeStep | None:
        if self.training or not self.usual or state.path is not None or state.mask is not None:
            return None
        positions = added(
            self.positions, state.cache.entries, ends.steps, self.blocks[0].attention.out.weight
        )
        if positions is None:
            return None
        form, parts = form_of(self.blocks, self.num_heads), self._all_parts()
        layers = Layers(self, form, parts, self.last_norm, self.project, self.entry_norm, positions)
        past = PastSteps(state.cache.sources, state.cache.layers, (), state.source)
        return transformer(layers, past, ends)

    def _all_parts(self) -> list[dict[str, nn.Module]]:
        parts = self._parts  # read once: another thread's start() may set it to None
        if parts is None:  # looking them up took a seventh of a step of one row
            parts = self._parts = [block.parts() for block in self.blocks]
        return parts


def _padded(source: decoding.SourceLayers) -> decoding.SourceLayers:
    """With one of few numbers of positions, so that few shapes occur."""
    layers, mask = source.layers, source.mask
    keys, _ = layers[0]
    if mask is None:
        mask = torch.ones(keys.shape[0], 1, 1, keys.shape[2], dtype=torch.bool, device=keys.device)
    more = doubled(SOURCE_ROOM, keys.shape[2]) - keys.shape[2]
    wide = (HeadSource(*(F.pad(part, (0, 0, 0, more)) for part in layer)) for layer in layers)
    return decoding.SourceLayers(tuple(wide), F.pad(mask, (0, more)))


def _converted(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x in this dtype, unless autocast does the conversion."""
    return x if x.dtype == dtype or torch.is_autocast_enabled(x.device.type) else x.to(dtype)


def _joined_mask(
    before: Tensor | None, mask: Tensor | None, rows: int, past: int, steps: int, device: torch.device
) -> Tensor | None:
    if before is None and mask is None:
        return None
    if before is None:
        before = torch.ones(rows, past, dtype=torch.bool, device=device)
    if mask is None:
        mask = torch.ones(rows, steps, dtype=torch.bool, device=device)
    return torch.cat([before, mask], 1)
