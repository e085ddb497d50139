"""The search step of a recurrent decoder (native/recurrent.h): cells, attention, input feeding.

Its plain twin is `Generator.step`. Read next: ../../decoders/recurrent.py, which gives its parts.
"""

from collections.abc import Sequence
from ctypes import Array, addressof
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft import native
from weft.native import KINDS, SEARCHED, SearchedCell, WholeStep, pointer
from weft.nn.kernels.cells.form import Gates
from weft.nn.kernels.panels import Packing, kept, packing
from weft.nn.kernels.writing.ends import Ends, Held, why_not


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
    """The step of a decoder in evaluation mode; None where compiled code cannot take it.

    Args:
        network: the decoder and its state before the first step.
        ends: token vectors, output layer, and the size of the search.
    """
    if why_not(ends, network.cells[0].x):
        return None
    writing = _Writing(network, ends)
    take = native.address("weft_write_recurrent", "decoding")
    return WholeStep(take, writing.job, writing.slabs, len(ends.output.weight), writing, lambda time: None)


class _Packed(NamedTuple):
    """Addresses and sizes of a decoder's weights, and the tensors that are there."""

    cells: "Array[SearchedCell]"
    query: int | None
    query_bias: int | None
    weight: int | None
    readout: int | None
    readout_bias: int | None
    held: list[Tensor]


class _Writing(Held):
    """The arguments of weft_write_recurrent."""

    def __init__(self, network: Network, ends: Ends) -> None:
        super().__init__(len(network.states[0][0]), ends)
        self.how = packing(network.of, network.cells[0].x, self.most)
        given = list(network.of.parameters())
        self.packed = kept(network.of, given, lambda how: _pack(network, how), self.how)
        self.cells = type(self.packed.cells).from_buffer_copy(self.packed.cells)
        for cell, state in zip(self.cells, network.states, strict=True):
            cell.first = self._state(state[0])
            cell.second = self._state(state[1]) if len(state) > 1 else None
        self.job = native.Recurrent()
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


def _pack(network: Network, how: Packing) -> _Packed:
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
    return _Packed(cells, *query, weight, *panels(network.readout), held)


GATES = {"lstm": 4, "gru": 3, "ssru": 2}
