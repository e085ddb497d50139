"""A word's vector in context from the states of its pieces, by an encoder that was trained on something else.

Read next: contextual.py, whose `InContext` sets it beside a task's own vectors.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.embed.contextual import Context
from weft.nn.encoders.encoder import Encoder


class Pieces(NamedTuple):
    """Sentences of S words at most, each word in pieces; R parts of sentences, marks around each.

    A sentence that is longer than the model reads at once has several parts.
    """

    tokens: Tensor  # [R, P] int64
    mask: Tensor  # [R, P] bool
    which: Tensor  # [R, P] int64, the place of each piece's word in [B S]; 0 for a mark
    share: Tensor  # [R, P] 1 / (pieces of the word); 0 for a mark and for padding

    def to(self, device: torch.device) -> "Pieces":
        """The same on a device."""
        return Pieces(*(part.to(device) for part in self))


class PiecesInContext(Context):
    """h_w = mean of the encoder's states over the pieces of word w; a word without pieces has zeros.

    The layers are the pieces' own vectors and the encoder's states, or the states alone where the two differ
    in width.

    Args:
        embed: tokens to [R, P, D].
        embed_size: D.
        encoder: reads them.

    Source: Devlin et al. 2019, section 5.3, who take a word's first piece; ours is the mean of all.
    """

    def __init__(self, embed: nn.Module, embed_size: int, encoder: Encoder) -> None:
        super().__init__()
        self.embed, self.encoder = embed, encoder
        self.width = encoder.size
        self.num_mixed = 2 if embed_size == encoder.size else 1

    def forward(self, given: Pieces, mask: Tensor) -> list[Tensor]:
        """See Context.forward."""
        x = self.embed(given.tokens)
        states = self.encoder(x, given.mask).states
        layers = [x, states] if self.num_mixed == 2 else [states]
        return [self._of_words(layer, given, mask) for layer in layers]

    @staticmethod
    def _of_words(layer: Tensor, given: Pieces, mask: Tensor) -> Tensor:
        """States [R, P, D] of pieces to [B, S, D] of words."""
        shared = layer * given.share[..., None].to(layer.dtype)
        words = shared.new_zeros(mask.numel(), layer.shape[2])
        words = words.index_add(0, given.which.flatten(), shared.flatten(0, 1))
        return words.view(*mask.shape, -1)
