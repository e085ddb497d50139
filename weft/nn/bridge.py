"""C12: initialise a decoder's state from an encoder's final state, per layer and direction."""

from typing import Literal

import torch
from torch import Tensor, nn

from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.kernels.linear import Linear
from weft.shapes import check_choice
from weft.tree import State

BridgeFrom = Literal["layers", "summary", "nothing"]


class Bridge(nn.Module):
    """h_dec_0 = f(h_enc_T): the identity if the sizes agree, learned otherwise.

    The decoder's top layer starts from the encoder's top layer, and so on downward; both directions of a
    layer are concatenated. A learned map is tanh(W x + b) for a cell's h (its first tensor) and W x + b for
    other tensors (an LSTM's c).

    Args:
        encoder: gives the final states.
        sizes: for each decoder layer the sizes of the tensors of its state.
        source: "layers" uses the final states of a recurrent encoder, or the summary of another one;
            "summary" always uses the summary; "nothing" starts from zeros.
    """

    def __init__(
        self, encoder: Encoder, sizes: tuple[tuple[int, ...], ...], *, source: BridgeFrom = "layers"
    ) -> None:
        super().__init__()
        check_choice("bridge", source, BridgeFrom)
        self.sizes = sizes
        self.source = "summary" if source == "layers" and not encoder.carry_sizes else source
        self.maps = nn.ModuleList()
        for layer, tensors in enumerate(sizes):
            row = nn.ModuleList()
            for index, size in enumerate(tensors):
                inputs = encoder.size
                if self.source == "layers":
                    directions = encoder.carry_sizes[self._layer(layer, len(encoder.carry_sizes))]
                    inputs = sum(each[min(index, len(each) - 1)] for each in directions)
                fits = inputs == size or self.source == "nothing"
                row.append(nn.Identity() if fits else Linear(inputs, size))
            self.maps.append(row)

    def forward(self, memory: Memory) -> tuple[tuple[Tensor, ...], ...]:
        """For each decoder layer the tensors of its initial state, [B, size] each."""
        return tuple(
            tuple(self._tensor(memory, layer, index, size) for index, size in enumerate(tensors))
            for layer, tensors in enumerate(self.sizes)
        )

    def _tensor(self, memory: Memory, layer: int, index: int, size: int) -> Tensor:
        if self.source == "nothing":
            return memory.summary.new_zeros(len(memory.summary), size)
        x = memory.summary
        if self.source == "layers":
            directions = memory.carry[self._layer(layer, len(memory.carry))]
            x = torch.cat([_tensor_at(state, index) for state in directions], -1)
        function = self.maps[layer][index]
        y = function(x)
        return torch.tanh(y) if index == 0 and isinstance(function, Linear) else y

    def _layer(self, layer: int, encoder_layers: int) -> int:
        return max(0, encoder_layers - len(self.sizes) + layer)


def _tensor_at(state: State, index: int) -> Tensor:
    return state[min(index, len(state) - 1)]
