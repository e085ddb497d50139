"""A decoder that reads: the encoder of a language model."""

from collections.abc import Callable

from torch import Tensor

from weft import masks
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.encoder import Encoder, Memory


class CausalEncoder(Encoder):
    """The states of a decoder, each of the positions up to its own; the summary is the last one.

    Args:
        in_size: features of the input.
        decoder: a part of nn/decoders, made without an encoder.

    Source: Radford et al. 2018, section 3.2; Howard & Ruder 2018 with a recurrent one.

    Example:
        >>> import torch
        >>> memory = CausalEncoder(5)(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0)
        >>> memory.states.shape, torch.equal(memory.summary, memory.states[:, -1])  # [B, S, D]
        (torch.Size([2, 7, 256]), True)
    """

    def __init__(self, in_size: int, *, decoder: Callable[..., Decoder] = RecurrentDecoder) -> None:
        super().__init__(in_size)
        self.decoder = decoder(in_size, None)
        self.size = self.decoder.size

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory; padding is at the end, where no real position sees it."""
        x, mask = self.check(x, mask)
        states, _ = self.decoder(x, self.decoder.start(None, x.shape[0]))
        return Memory(states, mask, masks.last(states, mask))
