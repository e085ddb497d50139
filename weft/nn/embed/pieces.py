"""Contextual word vectors from the states of the words' pieces in a pretrained encoder.

Read next: contextual.py, whose `InContext` concatenates them with a task's own vectors.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.masks import to_device
from weft.nn.embed.contextual import Context
from weft.nn.encoders.encoder import Encoder


class Pieces(NamedTuple):
    """Sentences of at most S words, as R segments of pieces with special symbols around each.

    A sentence longer than the model's maximum is split into several segments.
    """

    tokens: Tensor  # [R, P] int64
    mask: Tensor  # [R, P] bool
    which: Tensor  # [R, P] int64, index of each piece's word in [B S]; 0 for special symbols
    share: Tensor  # [R, P] 1 / (pieces of the word); 0 for special symbols and padding

    def to(self, device: torch.device) -> "Pieces":
        """Move to a device."""
        return to_device(self, device)


class PiecesInContext(Context):
    """h_w = mean of the encoder's states over the pieces of word w; zeros for a word without pieces.

    The layers are the piece embeddings [R, P, D] and the encoder's states, or only the states if the widths
    differ.

    Source: Devlin et al. 2019, section 5.3; they use a word's first piece, we use the mean of all pieces.
    """

    def __init__(self, embed: nn.Module, embed_size: int, encoder: Encoder) -> None:
        super().__init__()
        self.embed, self.encoder = embed, encoder
        self.width = encoder.size
        self.num_mixed = 2 if embed_size == encoder.size else 1

    def forward(self, given: Pieces, mask: Tensor) -> list[Tensor]:
        x = self.embed(given.tokens)
        states = self.encoder(x, given.mask).states
        layers = [x, states] if self.num_mixed == 2 else [states]
        return [_of_words(layer, given, mask) for layer in layers]


def _of_words(layer: Tensor, given: Pieces, mask: Tensor) -> Tensor:
    """States [R, P, D] of pieces to [B, S, D] of words."""
    shared = layer * given.share[..., None].to(layer.dtype)
    words = shared.new_zeros(mask.numel(), layer.shape[2])
    words = words.index_add(0, given.which.flatten(), shared.flatten(0, 1))
    return words.view(*mask.shape, -1)


class WordsInPieces(NamedTuple):
    """Sentences of words, and their pieces."""

    pieces: Pieces
    mask: Tensor  # [B, S] bool, the words

    def to(self, device: torch.device) -> "WordsInPieces":
        """Move to a device."""
        return to_device(self, device)


class FirstPieces(nn.Module):
    """The states of an encoder over pieces, those that count for each word: [B, S, D].

    Source: Devlin et al. 2019, section 5.3.

    Example:
        >>> from weft.nn import BagEncoder, Tokens
        >>> which, share = [0, 0, 1], [1.0, 0.0, 1.0]
        >>> pieces = Pieces(*(torch.tensor([one]) for one in ([5, 6, 7], [True] * 3, which, share)))
        >>> words = FirstPieces(Tokens(9, 4), BagEncoder(4, reduce="sum"))
        >>> words(WordsInPieces(pieces, torch.tensor([[True, True]]))).shape  # two words, three pieces
        torch.Size([1, 2, 4])
    """

    def __init__(self, embed: nn.Module, encoder: Encoder) -> None:
        super().__init__()
        self.embed, self.encoder = embed, encoder
        self.size = encoder.size

    def forward(self, given: WordsInPieces) -> Tensor:
        """Sentences to the states [B, S, D] of their words."""
        states = self.encoder(self.embed(given.pieces.tokens), given.pieces.mask).states
        return _of_words(states, given.pieces, given.mask)
