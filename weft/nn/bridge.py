"""Initialise a decoder's state from an encoder's final state, per layer and direction."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.ops import Linear
from weft.shapes import check_choice
from weft.tree import State

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
