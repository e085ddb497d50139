"""The search step of a Transformer decoder, or of one with SSRUs, in compiled code (native/writing.h).

Its plain twin is `Generator.step`, which a search calls wherever there is no such step. Read next:
../attention/decoding.py, which packs the layers; recurrent.py, the step of recurrent decoders.
"""

from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import ACTIVATIONS, KINDS, Decode, WholeStep, Writer, pointer
from weft.nn.kernels.attention import decoding
from weft.nn.kernels.panels import Packing, kept
from weft.nn.kernels.writing.ends import Ends, Held, why_not

PROJECTED = Packing("projected", tiled=False)
ROOM = 32
"""Steps for which a cache has space at first; a full one is replaced by one twice as large."""


class Layers(NamedTuple):
    """The layers of a decoder, as `decoding.step` takes them, and what is before them."""

    of: nn.Module
    form: decoding.Form
    parts: Sequence[decoding.Parts]
    last: nn.Module
    project: nn.Module  # from token vectors to the width; an identity if they are equal
    entry: nn.Module  # a norm, or an identity
    positions: Tensor  # [steps, D]


class Past(NamedTuple):
    """What a decoder remembers before the search."""

    sources: int
    caches: Sequence[Tensor]  # per layer [B, 2, H, E, K]; none with SSRUs
    carries: Sequence[Tensor]  # per layer [B, D]; none with self-attention
    source: decoding.Source | None


def transformer(layers: Layers, past: Past, ends: Ends) -> WholeStep | None:
    """The step of a decoder; None where compiled code cannot take it.

    Args:
        layers: in evaluation mode.
        past: the state before the first step, one hypothesis per source.
        ends: token vectors, output layer, and the size of the search.
    """
    size, heads = layers.positions.shape[1], layers.form.num_heads
    if why_not(ends, layers.parts[0]["second"].weight):  # type: ignore[arg-type]
        return None
    wide_head = size // heads > decoding.MOST_REGISTERS * native.loaded("decoding").width
    if wide_head or ends.output.weight.shape[1] > 4 * size:
        return None
    writing = _Writing(layers, past, ends)
    take = native.address("weft_write", "decoding")
    return WholeStep(take, writing.job, writing.slabs, len(ends.output.weight), writing, writing.before)


class _Writing(Held):
    """The arguments of weft_write, and the caches, which grow."""

    def __init__(self, layers: Layers, past: Past, ends: Ends) -> None:
        super().__init__(past.sources, ends)
        self.source = past.source  # keys and values, to which the layers point
        self.caches, self.space = past.caches, 0
        self.first = past.caches[0].shape[3] if past.caches else 0
        self.packed, self.how = decoding.packed(layers.of, layers.parts, layers.last, self.most)
        self.each = decoding.with_source(self.packed.each, past.source)
        for layer, carry in zip(self.each, past.carries, strict=False):
            both = torch.zeros(2, past.sources, ends.width, carry.shape[1])
            both[1, :, 0] = carry
            layer.carry = self.hold(both)
        self.job = Writer()
        self.job.layers = self._layers(layers)
        self.head(self.job, layers.positions.shape[1])
        self._entry(layers)
        self.job.first, self.job.path_row = self.first, self.first + ends.steps
        if ends.width > 1 and past.caches:
            self.job.paths = self.hold(
                torch.arange(self.job.path_row).repeat(2 * past.sources * ends.width, 1)
            )

    def before(self, time: int) -> None:
        """Make space for the steps before this time."""
        width = self.ends.width
        need, most = (self.first + 1 + (steps - 1) * width for steps in (time, self.ends.steps))
        if not self.caches or need <= self.space:
            return
        self.space = min(most, max(2 * need, self.first + ROOM * width))
        sources, two, heads, entries, size = self.caches[0].shape
        shape = len(self.caches), sources, two, heads, self.space, size
        new = self.caches[0].new_empty(shape).unbind()
        for layer, old, cache in zip(self.each, self.caches, new, strict=True):
            if entries:
                cache[:, :, :, :entries] = old
            layer.cache = pointer(cache)
            layer.cache_source, layer.cache_side, layer.cache_head = cache.stride()[:3]
        self.caches = new

    def _layers(self, layers: Layers) -> Decode:
        form, source, packed, size = layers.form, self.source, self.packed, layers.positions.shape[1]
        places = 0 if source is None else source.layers[0][0].shape[2]
        mask = None if source is None or source.mask is None else source.mask.contiguous()
        high = form.inner * (2 if form.activation == "swiglu" else 1)
        longest = max(self.first + self.ends.steps, places)
        room = self.most * (2 * size + max(3 * size, high)) + longest
        self.job.room, self.job.rooms = room, self.hold(torch.empty(self.slabs, room))
        return Decode(
            len(self.each), self.most, self.sources, size, form.num_heads, form.inner, 0, 0, places, 1,
            form.before, packed.root, ACTIVATIONS[form.activation], packed.epsilon, addressof(self.each),
            pointer(packed.gain), pointer(packed.shift), None, self.hold(mask), None, None,
            *self.room(self.how, max(size, form.inner)), KINDS[self.how.kind], False,
            0, None, None, 0, self.ends.width, self.sources,
        )  # fmt: skip

    def _entry(self, layers: Layers) -> None:
        """What stands before the layers: projected token vectors, positions, a norm."""
        of, table, scale = self.ends.vectors
        if getattr(layers.project, "weight", None) is not None:
            given = [table, *layers.project.parameters()]
            projected = kept(of, given, lambda _: layers.project(table * scale).float(), PROJECTED)
            self.job.scale, self.job.table = 1.0, self.hold(projected)
        self.job.positions = self.plain(layers.positions)
        self.job.entry_gain = self.plain(getattr(layers.entry, "weight", None))
        self.job.entry_shift = self.plain(getattr(layers.entry, "bias", None))
