"""Whole searches in compiled code: a model's step as the struct that native/searching.cpp takes many times.

A step is what surrounds the decoder (`Vectors` of the last symbols, `Output` with its softmax; `Ends`) and
the decoder itself: `transformer` or `recurrent`. Read next: ../../search/compiled.py, which calls them;
../../native/writing.h, ../../native/recurrent.h.
"""

from collections.abc import Sequence
from ctypes import Array, Structure, addressof
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import WholeStep, pointer
from weft.native.jobs import (
    ACTIVATIONS,
    KINDS,
    SEARCHED,
    Decode,
    PredictJob,
    Recurrent,
    SearchedCell,
    WriterJob,
)
from weft.nn.kernels import decoding
from weft.nn.kernels.decoding import Packing, kept, packing, suits_search
from weft.nn.kernels.equations import Gates
from weft.nn.kernels.linear import room_arguments
from weft.probe import edit_active, watching

PLAIN = Packing("float32", tiled=False)


class Vectors(NamedTuple):
    """Token vectors: the table of a module times a scale."""

    of: nn.Module
    table: Tensor  # [V, E]
    scale: float


class Output(NamedTuple):
    """The output layer of a module: log softmax(W project(h) + b)."""

    of: nn.Module
    project: nn.Module | None  # a linear map without bias
    weight: Tensor  # [V, D]
    bias: Tensor  # [V]


class Ends(NamedTuple):
    """What stands around a decoder, and how far a search may go."""

    vectors: Vectors
    output: Output
    width: int  # W
    steps: int


def suits(ends: Ends, *weights: Tensor) -> bool:
    """Whether compiled code can take the steps of a search, as far as all decoders are concerned."""
    output, first = ends.output, ends.output.weight
    if watching() or edit_active():
        return False
    if first.dtype != output.bias.dtype or len(first) > len(ends.vectors.table):
        return False
    if any(one.dtype != first.dtype or one.device != first.device for one in (ends.vectors.table, *weights)):
        return False
    return suits_search(first)


class Held:
    """A struct for compiled code, and the tensors to which it points."""

    def __init__(self, sources: int, ends: Ends) -> None:
        self.ends = ends
        self.sources = sources
        self.slabs = native.slabs(sources)
        self.most = -(-sources // self.slabs) * ends.width
        """Most rows of a slab."""
        self.tensors: list[Tensor] = []

    def hold(self, tensor: Tensor | None) -> int | None:
        """The address of a tensor, which lives as long as this."""
        if tensor is not None:
            self.tensors.append(tensor)
        return pointer(tensor)

    def plain(self, tensor: Tensor | None) -> int | None:
        """The address of its numbers in float32."""
        return self.hold(None if tensor is None else tensor.detach().float().contiguous())

    def room(self, how: Packing, widest: int) -> tuple[int, int | None]:
        """A buffer for rows of at most `widest` numbers that are split or rounded: its size and address."""
        cut = how.room(self.most, widest, self.slabs)
        self.hold(cut)
        return room_arguments(cut)

    def head(self, job: Structure, size: int) -> None:
        """Set `head`, `project_panel`, `table` and `scale` of a struct for features [.., size]."""
        of, project, weight, bias = self.ends.output
        classes, inputs = weight.shape
        how = packing(of, weight, self.most)
        panel = kept(of, [weight], lambda how: how.panels(weight), how)
        if project is not None:
            inner: Tensor = project.weight  # type: ignore[assignment]
            job.project_panel = self.hold(kept(project, [inner], lambda how: how.panels(inner), how))
        job.head = PredictJob(
            self.most, inputs, classes, 1, self.hold(panel), self.plain(bias), None, None,
            *self.room(how, max(inputs, size)), KINDS[how.kind],
        )  # fmt: skip
        of, table, scale = self.ends.vectors
        if table.dtype != torch.float32:
            table = kept(of, [table], lambda _: self.ends.vectors.table.detach().float(), PLAIN)
        job.scale, job.table = scale, self.plain(table)


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


class PastSteps(NamedTuple):
    """What a decoder remembers before the search."""

    sources: int
    caches: Sequence[Tensor]  # per layer [B, 2, H, E, K]; none with SSRUs
    carries: Sequence[Tensor]  # per layer [B, D]; none with self-attention
    source: decoding.SourceLayers | None


def transformer(layers: Layers, past: PastSteps, ends: Ends) -> WholeStep | None:
    """The step of a decoder; None where compiled code cannot take it."""
    size, heads = layers.positions.shape[1], layers.form.num_heads
    if not suits(ends, layers.parts[0]["second"].weight):  # type: ignore[arg-type]
        return None
    wide_head = size // heads > decoding.MOST_REGISTERS * native.loaded("decoding").width
    if wide_head or ends.output.weight.shape[1] > 4 * size:
        return None
    writing = _TransformerWriting(layers, past, ends)
    take = native.address("weft_write", "decoding")
    return WholeStep(take, writing.job, writing.slabs, len(ends.output.weight), writing, writing.before)


class _TransformerWriting(Held):
    """The arguments of weft_write, and the caches, which grow."""

    def __init__(self, layers: Layers, past: PastSteps, ends: Ends) -> None:
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
        self.job = WriterJob()
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
        mask = None if source is None else source.rows()
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


class Comparison(NamedTuple):
    """An attention score: factor * q^T k, or with a query's map w^T tanh(query(q) + k)."""

    factor: float = 1.0
    query: nn.Module | None = None  # a linear map
    weight: Tensor | None = None  # [1, A]


class Looking(NamedTuple):
    """Attention to a source, and where its result is used."""

    by: Comparison
    early: bool  # part of the cells' input, with the state before the step as the query
    late: bool  # part of what is read out
    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, D]
    mask: Tensor  # [B, S] bool


class Network(NamedTuple):
    """A recurrent decoder."""

    of: nn.Module
    cells: Sequence[Gates]
    residual: bool  # layers above the first add their input
    readout: nn.Module | None  # a linear map
    bent: bool  # whether the readout ends with tanh
    looking: Looking | None
    states: Sequence[tuple[Tensor, ...]]  # of each layer before the search, [B, H] each
    fed: Tensor | None  # [B, D] the last output, with input feeding


def recurrent(network: Network, ends: Ends) -> WholeStep | None:
    """The step of a decoder in evaluation mode; None where compiled code cannot take it."""
    if not suits(ends, network.cells[0].x):
        return None
    writing = _RecurrentWriting(network, ends)
    take = native.address("weft_write_recurrent", "decoding")
    return WholeStep(take, writing.job, writing.slabs, len(ends.output.weight), writing, lambda time: None)


class _PackedRecurrent(NamedTuple):
    """Addresses and sizes of a decoder's weights, and the tensors that are there."""

    cells: "Array[SearchedCell]"
    query: int | None
    query_bias: int | None
    weight: int | None
    readout: int | None
    readout_bias: int | None
    held: list[Tensor]


class _RecurrentWriting(Held):
    """The arguments of weft_write_recurrent."""

    def __init__(self, network: Network, ends: Ends) -> None:
        super().__init__(len(network.states[0][0]), ends)
        self.how = packing(network.of, network.cells[0].x, self.most)
        given = list(network.of.parameters())
        self.packed = kept(network.of, given, lambda how: _pack_recurrent(network, how), self.how)
        self.cells = type(self.packed.cells).from_buffer_copy(self.packed.cells)
        for cell, state in zip(self.cells, network.states, strict=True):
            cell.first = self._state(state[0])
            cell.second = self._state(state[1]) if len(state) > 1 else None
        self.job = Recurrent()
        self._layers(network)
        if network.looking is not None:
            self._looking(network.looking)
        self._readout(network)
        self.head(self.job, self.job.size)
        self._room()

    def _state(self, before: Tensor) -> int | None:
        """Two halves [2, B, W, H], of which a step reads one and writes the other."""
        both = torch.zeros(2, len(before), self.ends.width, before.shape[1])
        both[1, :, 0] = before
        return self.hold(both)

    def _layers(self, network: Network) -> None:
        job = self.job
        job.layers, job.all, job.beam = len(self.cells), self.sources, self.ends.width
        job.kind, job.each, job.residual = KINDS[self.how.kind], addressof(self.cells), network.residual
        job.vector = self.ends.vectors.table.shape[1]

    def _looking(self, looking: Looking) -> None:
        job, packed, (keys, values) = self.job, self.packed, (looking.keys.float(), looking.values.float())
        keys, values = (part if part.stride(2) == 1 else part.contiguous() for part in (keys, values))
        job.early, job.late, job.score = looking.early, looking.late, int(looking.by.query is None)
        job.inner, job.context, job.places = keys.shape[2], values.shape[2], keys.shape[1]
        job.query_panel, job.query_bias, job.weight = packed.query, packed.query_bias, packed.weight
        job.factor, job.keys, job.values = looking.by.factor, self.hold(keys), self.hold(values)
        job.keys_source, job.keys_place = keys.stride()[:2]
        job.values_source, job.values_place = values.stride()[:2]
        job.mask = self.hold(looking.mask.contiguous())

    def _readout(self, network: Network) -> None:
        job, packed = self.job, self.packed
        job.shown = self.cells[-1].size + (job.context if job.late else 0)
        job.readout_panel, job.readout_bias = packed.readout, packed.readout_bias
        outputs = job.shown if network.readout is None else len(network.readout.weight)  # type: ignore[arg-type]
        job.bent, job.size = network.bent, outputs
        job.fed = None if network.fed is None else self._state(network.fed)

    def _room(self) -> None:
        job, sizes = self.job, [cell.size for cell in self.cells]
        inputs, gates = self.cells[0].inputs, 4 * max(sizes)
        output = self.ends.output.weight.shape[1]
        rows = inputs + job.shown + job.size + sum(sizes) + 2 * max(sizes) + job.inner + 2 * gates + output
        job.room = self.most * rows + job.places
        job.rooms = self.hold(torch.empty(self.slabs, job.room))
        widest = max(inputs, *sizes, job.shown, *(cell.inputs for cell in self.cells))
        job.halves, job.cut = self.room(self.how, widest)


def _pack_recurrent(network: Network, how: Packing) -> _PackedRecurrent:
    held: list[Tensor] = []

    def hold(tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        held.append(tensor.detach().float().contiguous() if tensor.is_floating_point() else tensor)
        return pointer(held[-1])

    def panels(part: nn.Module | None) -> tuple[int | None, int | None]:
        if part is None:
            return None, None
        return hold(how.panels(part.weight)), hold(part.bias)  # type: ignore[arg-type]

    cells = (SearchedCell * len(network.cells))()
    for cell, gates in zip(cells, network.cells, strict=True):
        cell.kind, cell.inputs = SEARCHED[gates.kind], gates.x.shape[1]
        cell.size = len(gates.x) // GATES[gates.kind]
        cell.x_panel, cell.x_bias = hold(how.panels(gates.x)), hold(gates.bias)
        if gates.h is not None:
            cell.h_panel = hold(how.panels(gates.h))
        if gates.bias_n is not None:
            cell.h_bias = hold(torch.cat([gates.bias_n.new_zeros(2 * cell.size), gates.bias_n]))
    by = None if network.looking is None else network.looking.by
    query = (None, None) if by is None else panels(by.query)
    weight = None if by is None else hold(by.weight)
    return _PackedRecurrent(cells, *query, weight, *panels(network.readout), held)


GATES = {"lstm": 4, "gru": 3, "ssru": 2}
