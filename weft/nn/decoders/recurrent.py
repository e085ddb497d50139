"""A recurrent decoder, with or without attention to a memory.

If steps depend on each other only through the cells (late attention, no input feeding), all steps run at
once; otherwise a loop runs them one by one. A bridge makes its first state of an encoder's last.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import harmless
from weft.native import WholeStep
from weft.nn.attention import Attention, Source, Weights
from weft.nn.cache import SOURCE_ROOM
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Dropout, Ends, Linear, Looking, Network, recurrent, repeating
from weft.nn.randomness import recomputed
from weft.nn.recurrent import Cells, LastNorm, Stack
from weft.nn.scores import Additive, Score
from weft.setting_types import DropoutRate, Size, Sizes
from weft.shapes import check_choice
from weft.tree import State, doubled, where

Enters = Literal["late", "input", "both", "never"]
Readout = Literal["tanh", "none"]
BridgeFrom = Literal["layers", "linear", "summary", "shared", "joint", "nothing"]


class Bridge(nn.Module):
    """h_dec_0 = f(h_enc_T): the identity if the sizes agree, learned otherwise.

    The decoder's top layer starts from the encoder's top layer, and so on downward; both directions of a
    layer are concatenated. A learned map is tanh(W x + b) for a cell's h (its first tensor) and W x + b for
    other tensors (an LSTM's c). A layer whose state no bridge may set (`Cell.bridges`) gets no tensors, and
    one whose encoder layer has no such state reads the summary.

    Args:
        encoder: gives the final states.
        sizes: for each decoder layer the sizes of the tensors of its state.
        source: "layers" uses the final states of a recurrent encoder, or the summary of another one;
            "linear" does the same, but no learned map has a tanh, as in fairseq; "summary" always uses the
            summary; "shared" starts every tensor of every layer from the same tanh(W s + b) of the summary s,
            as JoeyNMT does; "joint" computes h of all layers as one relu(W x + b) of the final states x of
            all layers and directions, and likewise c, as OpenNMT does; "nothing" starts from zeros.

    Raises:
        ConfigError: "shared" with layers or states of several sizes; "joint" without a recurrent encoder.

    Example:
        >>> import torch
        >>> from weft.nn import RecurrentEncoder
        >>> encoder = RecurrentEncoder(5, sizes=(6,))
        >>> bridge = Bridge(encoder, sizes=((4, 4),))  # to an LSTM decoder of one layer of 4 units
        >>> ((h, c),) = bridge(encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0))
        >>> h.shape  # [B, H]
        torch.Size([2, 4])
    """

    def __init__(
        self, encoder: Encoder, sizes: tuple[tuple[int, ...], ...], *, source: BridgeFrom = "layers"
    ) -> None:
        super().__init__()
        check_choice("bridge", source, BridgeFrom)
        self.sizes = sizes
        self.squashed = source != "linear"
        source = "layers" if source == "linear" else source
        self.source = "summary" if source == "layers" and not encoder.carry_sizes else source
        self.maps = nn.ModuleList()
        if source == "shared":
            every = {size for tensors in sizes for size in tensors}
            if len(every) > 1:
                raise ConfigError(
                    f"bridge: shared needs states of one size, got {', '.join(map(str, sorted(every)))}; "
                    "give every layer the same size, or use bridge: summary"
                )
            self.maps.extend(Linear(encoder.size, size) for size in every)
            return
        if source == "joint":
            self._join(encoder)
            return
        for layer, tensors in enumerate(sizes):
            row = nn.ModuleList()
            for index, size in enumerate(tensors):
                inputs = encoder.size
                directions = self._of_layer(encoder.carry_sizes, layer)
                if self.source == "layers" and all(directions):
                    inputs = sum(each[min(index, len(each) - 1)] for each in directions)
                fits = inputs == size or self.source == "nothing"
                row.append(nn.Identity() if fits else Linear(inputs, size))
            self.maps.append(row)

    def forward(self, memory: Memory) -> tuple[tuple[Tensor, ...], ...]:
        """For each decoder layer the tensors of its initial state, [B, size] each."""
        if self.source == "shared":
            begin = torch.tanh(self.maps[0](memory.summary)) if self.maps else memory.summary
            return tuple((begin,) * len(tensors) for tensors in self.sizes)
        if self.source == "joint":
            return self._joint(memory)
        return tuple(
            tuple(self._tensor(memory, layer, index, size) for index, size in enumerate(tensors))
            for layer, tensors in enumerate(self.sizes)
        )

    def _tensor(self, memory: Memory, layer: int, index: int, size: int) -> Tensor:
        if self.source == "nothing":
            return memory.summary.new_zeros(memory.summary.shape[0], size)
        x = memory.summary
        directions = self._of_layer(memory.carry, layer) if self.source == "layers" else ()
        if directions and all(directions):
            x = torch.cat([_tensor_at(state, index) for state in directions], -1)
        of_layer = self.maps[layer]
        assert isinstance(of_layer, nn.ModuleList)
        function = of_layer[index]
        y = function(x)
        return torch.tanh(y) if self.squashed and index == 0 and isinstance(function, Linear) else y

    def _join(self, encoder: Encoder) -> None:
        """One map for each tensor of a state."""
        if not encoder.carry_sizes or not all(each for layer in encoder.carry_sizes for each in layer):
            raise ConfigError(
                "bridge: joint needs a recurrent encoder whose states a bridge may read; use bridge: summary"
            )
        if len({len(tensors) for tensors in self.sizes}) != 1:
            raise ConfigError("bridge: joint needs layers of the same cell; use bridge: layers")
        for index in range(len(self.sizes[0])):
            inputs = sum(each[min(index, len(each) - 1)] for layer in encoder.carry_sizes for each in layer)
            self.maps.append(Linear(inputs, sum(tensors[index] for tensors in self.sizes)))

    def _joint(self, memory: Memory) -> tuple[tuple[Tensor, ...], ...]:
        every = []  # for each tensor of a state those of all layers
        for index, function in enumerate(self.maps):
            x = torch.cat([_tensor_at(state, index) for layer in memory.carry for state in layer], -1)
            every.append(torch.relu(function(x)).split([tensors[index] for tensors in self.sizes], -1))
        return tuple(zip(*every, strict=True)) if every else ((),) * len(self.sizes)

    def _of_layer(self, carry: Any, layer: int) -> Any:
        """The encoder's layer from which a layer of the decoder starts; () if it has none."""
        return carry[max(0, len(carry) - len(self.sizes) + layer)] if carry else ()


def _tensor_at(state: State, index: int) -> Tensor:
    return state[min(index, len(state) - 1)]


class RecurrentState(NamedTuple):
    """The state of a recurrent decoder."""

    layers: tuple[State, ...]  # each layer's cell state
    fed: Tensor | None  # [N, D] the last output, with input feeding
    source: Source | None  # keys and values of the memory


class RecurrentDecoder(Decoder):
    """A stack of cells with optional attention; `enters` says where attention is used.

    late:  query h_t,     output [h_t; out]                     (Luong 2015)
    input: query h_{t-1}, cell input [x_t; out], output h_t
    both:  query h_{t-1}, the same context in both places       (Bahdanau 2014)
    never: the memory only gives the initial state              (Sutskever 2014, Cho 2014)

    Args:
        in_size: features of the input.
        encoder: its memory is read; None for a language model.
        sizes: hidden size of each layer.
        cell: the recurrence; several take turns, layer by layer.
        score: compares the query (the top layer's h) with the memory.
        enters: see above.
        input_feeding: add the last output to the next input (Luong 2015, section 3.3).
        key_size, value_size, shared, weights: of the attention; see `Attention`.
        readout: size of tanh(W [h; out] + b), Luong's attentional vector; 0 uses [h; out] directly;
            None takes the top layer's size if attention reaches the output.
        readout_activation: "none" leaves out the readout's tanh, as OpenNMT does with additive attention.
        bridge: source of the initial state; see `Bridge`.
        bidirectional: must be False; True raises an error that explains why.
        residual: layers above the first add their input to their output.
        dropout: after every layer and on the output.
        last_norm: of the stack's output; see `Stack`.

    Raises:
        ConfigError: bidirectional is True; a decoder must not see later inputs.

    Example:
        >>> import torch
        >>> from weft.nn import Memory, RecurrentEncoder
        >>> encoder = RecurrentEncoder(5, sizes=(6,))
        >>> decoder = RecurrentDecoder(5, encoder, sizes=(6,), enters="input")
        >>> memory = encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0)
        >>> y, state = decoder(torch.zeros(2, 3, 5), decoder.start(memory, 2))
        >>> y.shape  # [B, T, D]
        torch.Size([2, 3, 6])
    """

    def __init__(
        self,
        in_size: int,
        encoder: Encoder | None = None,
        *,
        sizes: Sizes = (256,),
        cell: Cells = LSTM,
        score: Callable[[int, int], Score] = Additive,
        enters: Enters = "late",
        input_feeding: bool = False,
        key_size: Size | None = None,
        value_size: Size | None = None,
        shared: bool = False,
        weights: Weights = "softmax",
        readout: int | None = None,
        readout_activation: Readout = "tanh",
        bridge: BridgeFrom = "layers",
        bidirectional: bool = False,
        residual: bool = False,
        dropout: DropoutRate = 0.0,
        last_norm: LastNorm = "none",
    ) -> None:
        super().__init__(in_size, encoder)
        if bidirectional:
            raise ConfigError(
                "bidirectional: expected false for a decoder or language model, got true; it must not "
                "see later words; only an encoder may"
            )
        check_choice("enters", enters, Enters)
        check_choice("readout_activation", readout_activation, Readout)
        if not sizes:
            raise ConfigError(
                "sizes: a recurrent network needs a size for each layer, for example [256, 256]"
            )
        self.enters: Enters = "never" if encoder is None else enters
        self.input_feeding = input_feeding
        self.attention, context = None, 0
        if encoder is not None and enters != "never":
            self.attention = Attention(
                score(sizes[-1], key_size or encoder.size),
                encoder.size,
                key_size=key_size,
                value_size=value_size,
                shared=shared,
                weights=weights,
            )
            context = self.attention.size
        shown = sizes[-1] + (context if self.enters in ("late", "both") else 0)
        readout = (sizes[-1] if shown > sizes[-1] else 0) if readout is None else readout
        self.size = readout or shown
        last = nn.Tanh() if readout_activation == "tanh" else nn.Identity()
        self.readout = nn.Sequential(Linear(shown, readout), last) if readout else nn.Identity()
        at_input = (context if self.enters in ("input", "both") else 0) + (self.size if input_feeding else 0)
        self.stack = Stack(
            in_size + at_input, sizes, cell=cell, residual=residual, dropout=dropout, last_norm=last_norm
        )
        self.bridge = None
        if encoder is not None:
            self.bridge = Bridge(encoder, tuple(layer[0] for layer in self.stack.state_sizes), source=bridge)
        self.dropout = Dropout(dropout)

    def start(self, memory: Memory | None, rows: int) -> RecurrentState:
        """The bridge's state (zeros without a memory), zeros for input feeding, and the prepared memory."""
        like = next(self.parameters()).new_zeros(rows, 1)
        bridge = None if memory is None else self.bridge
        layers = self.stack.start(like) if bridge is None else self.stack.begin(bridge(memory), like)
        fed = like.new_zeros(rows, self.size) if self.input_feeding else None
        source = None if memory is None or self.attention is None else self.attention.prepare(memory)
        return RecurrentState(layers, fed, source)

    def forward(
        self, x: Tensor, state: RecurrentState, mask: Tensor | None = None
    ) -> tuple[Tensor, RecurrentState]:
        if self.enters in ("input", "both") or self.input_feeding:
            return self._loop(x, state, mask)
        h, finals = self.stack(x, state.layers, mask)
        output = partial(recomputed, self._output) if self.training else self._output
        y = output(h, None, state.source)
        return y, RecurrentState(tuple(layer[0] for layer in finals), None, state.source)

    def whole_step(self, state: RecurrentState, ends: Ends) -> WholeStep | None:
        cells = [cell.step_weights() for cell in self.stack.forwards]
        usable = [gates for gates in cells if gates is not None]
        if self.training or len(usable) < len(cells):
            return None
        looking, attention, source = None, self.attention, state.source
        if attention is not None:
            by = attention.score.comparison()
            if by is None or attention.weights != "softmax" or source is None:
                return None
            early, late = self.enters in ("input", "both"), self.enters in ("late", "both")
            looking = Looking(by, early, late, source.keys, source.values, source.mask)
        readout, bent = None, False
        if isinstance(self.readout, nn.Sequential):
            readout, bent = self.readout[0], isinstance(self.readout[1], nn.Tanh)
        residual = self.stack.residual
        network = Network(self, usable, residual, readout, bent, looking, state.layers, state.fed)
        return recurrent(network, ends)

    def fixed(self, state: RecurrentState, width: int, steps: int) -> tuple[RecurrentState, int] | None:
        source = state.source
        if source is not None:  # padded to one of few lengths, so that few shapes occur
            more = doubled(SOURCE_ROOM, source.mask.shape[1]) - source.mask.shape[1]
            keys, values = (F.pad(part, (0, 0, 0, more)) for part in source[:2])
            source = source._replace(keys=keys, values=values, mask=F.pad(source.mask, (0, more)))
        return state._replace(source=source), steps

    def _loop(self, x: Tensor, state: RecurrentState, mask: Tensor | None) -> tuple[Tensor, RecurrentState]:
        layers, fed, source = state
        x = harmless(x, mask)
        ys = []
        step = partial(recomputed, self._step) if self.training else self._step
        with repeating():
            for t, one in enumerate(x.unbind(1)):
                y, new = step(one, layers, fed, source)
                layers, fed = new if mask is None else where(mask[:, t], new, (layers, fed))
                ys.append(y)
        return torch.cat(ys, 1), RecurrentState(layers, fed, source)

    def _step(
        self, x: Tensor, layers: tuple[State, ...], fed: Tensor | None, source: Source | None
    ) -> tuple[Tensor, tuple[tuple[State, ...], Tensor | None]]:
        """x [N, D_in] to y [N, 1, D], and the input of the next step."""
        parts, context = [x], None
        if self.enters in ("input", "both"):
            query = self.stack.shown(layers[-1:])
            context = self.attention(query[:, None], source)
            parts.append(context[:, 0])
        if fed is not None:
            parts.append(fed)
        h, finals = self.stack(torch.cat(parts, -1)[:, None], layers)
        y = self._output(h, context, source)
        return y, (tuple(layer[0] for layer in finals), y[:, 0] if self.input_feeding else None)

    def _output(self, h: Tensor, context: Tensor | None, source: Source | None) -> Tensor:
        if self.enters == "late":
            context = self.attention(h, source)
        if self.enters in ("late", "both"):
            assert context is not None
            h = torch.cat([h, context], -1)
        y = self.readout(h)
        return self.dropout(y) if self.training else y
