"""Contextual word vectors: ELMo, and the states of the words' pieces in a pretrained encoder.

ELMo is a forward and a backward language model:

x_t from the letters;  h→ and h← from two independent stacks of LSTMs;
p(w_{t+1} | w_1..w_t) from h→_t and p(w_{t-1} | w_t..w_n) from h←_t, with one shared softmax

Read next: words.py, whose vectors `InContext` concatenates with these.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft import masks
from weft.masks import fill, grid, to_device
from weft.nn.cells.lstm import LSTM
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.words import Characters, Spelled, Words
from weft.nn.encoders.encoder import Encoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss
from weft.nn.ops import Dropout, Linear
from weft.nn.recurrent import Stack
from weft.setting_types import Count, DropoutRate, Size

BOUNDARY = 0
"""Target before the first and after the last word; no word has this number."""


class Sentences(NamedTuple):
    """A batch of sentences.

    Example:
        >>> import torch
        >>> from weft.nn.embed.words import Spelled
        >>> one = Spelled(torch.tensor([[4, 5]]), torch.tensor([[1, 2], [3, 0]]), torch.tensor([[0, 1]]))
        >>> Sentences(one, torch.ones(1, 2) > 0, target_tokens=3).mask.shape  # [B, S]
        torch.Size([1, 2])
    """

    given: Spelled
    mask: Tensor  # [B, S] bool
    target_tokens: int  # words plus one boundary per sentence, in one direction

    def to(self, device: torch.device) -> "Sentences":
        """Move to a device."""
        return to_device(self, device)

    def filled(self) -> "Sentences":
        """The same batch with masked columns; a masked row would count as a boundary."""
        columns = grid(self.mask.shape[1])
        mask = fill(self.mask, len(self.mask), columns)
        return Sentences(self.given.filled(columns), mask, self.target_tokens)


class Directions(NamedTuple):
    """The loss of each direction."""

    forward: Loss
    backward: Loss


class Context(nn.Module, ABC):
    """Computes vectors of words in context.

    Attributes:
        width: D, features of each layer.
        num_mixed: number of layers.
    """

    width: int
    num_mixed: int

    @abstractmethod
    def forward(self, given: Any, mask: Tensor) -> list[Tensor]:
        """The layers, [B, S, D] each, of the words with mask [B, S]."""


class BothWays(Context):
    """A forward and a backward language model that share character embeddings and softmax.

    Args:
        num_words: V, the classes of the softmax; 0 is the boundary, 1 the unknown word.
        num_letters: number of letters, including padding.
        size: H, of every layer in each direction.
        num_layers: L.
        letter_size, spelled: see `Characters`.
        residual: layers above the first add their input.
        dropout: on the input of every layer and of the softmax.

    Source: Peters et al. 2018, sections 3.1 and 3.4. They use filters of seven widths with highway layers,
    and cells of 4096 units projected to 512; we use one width and a projection.

    Example:
        >>> given = Spelled(torch.tensor([[4, 2]]), torch.tensor([[1], [2]]), torch.tensor([[0, 1]]))
        >>> [layer.shape[2] for layer in BothWays(7, 3, 5, num_layers=2)(given, torch.ones(1, 2) > 0)]
        [10, 10, 10]
    """

    def __init__(
        self,
        num_words: int,
        num_letters: int,
        size: int,
        *,
        num_layers: Count = 2,
        letter_size: Size = 16,
        spelled: int = 128,
        residual: bool = True,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__()
        self.characters = Characters(num_letters, spelled, letter_size=letter_size)
        self.project = Linear(self.characters.size, size)
        self.ends = nn.Parameter(torch.randn(2, size))
        self.forwards = nn.ModuleList([Stack(size, (size,), cell=LSTM) for _ in range(num_layers)])
        backwards = [Stack(size, (size,), cell=LSTM) for _ in range(num_layers)]
        for stack in backwards:
            stack.from_end = True
        self.backwards = nn.ModuleList(backwards)
        self.residual = residual
        self.dropout = Dropout(dropout)
        self.head = Categorical(size, num_words)
        self.size, self.num_layers = size, num_layers
        self.width, self.num_mixed = 2 * size, num_layers + 1

    def forward(self, given: Spelled, mask: Tensor) -> list[Tensor]:
        """The L + 1 layers [B, S, 2 H] of each word; the lowest has no context."""
        ahead, back, _ = self._layers(given, mask)
        both = [torch.cat([x, y], -1) for x, y in zip(ahead, back, strict=True)]
        return [layer[:, 1:-1] for layer in both]

    def ahead(self, given: Spelled, mask: Tensor) -> Tensor:
        """The states [B, S + 1, H] from which the forward model predicts each word and the end."""
        return self._layers(given, mask)[0][-1][:, :-1]

    def loss(self, batch: Sentences) -> Loss:
        """Nats summed over both directions; the count is that of one direction, so the mean is doubled."""
        ahead, back = self.directions(batch)
        return Loss(ahead.total + back.total, ahead.count)

    def directions(self, batch: Sentences) -> Directions:
        """The loss of each direction: forward of words and the end, backward of words and the beginning."""
        top, target, mask = self._targets(batch)
        rows = len(batch.mask)
        real = masks.derived(lambda mask: mask[:rows], mask)  # the same in both directions
        forward = self.head.loss(top[:rows], target[:rows], real)
        return Directions(forward, self.head.loss(top[rows:], target[rows:], real))

    def nats(self, batch: Sentences) -> tuple[Tensor, Tensor]:
        """Nats of each prediction: forward rows first (words and the end), then backward rows.

        Returns:
            [2 B, S + 1], and a mask of the same shape, False at padding.
        """
        top, target, mask = self._targets(batch)
        return -self.head(top).gather(2, target[..., None])[..., 0] * mask, mask

    def _targets(self, batch: Sentences) -> tuple[Tensor, Tensor, Tensor]:
        """Both directions stacked: states, targets and mask."""
        ahead, back, framed = self._layers(batch.given, batch.mask)
        words = nn.functional.pad(
            batch.given.words.masked_fill(~batch.mask, BOUNDARY), (1, 1), value=BOUNDARY
        )
        top = self.dropout(torch.cat([ahead[-1][:, :-1], back[-1][:, 1:]]))
        mask = masks.derived(lambda framed: torch.cat([framed[:, 1:], framed[:, 1:]]), framed)
        return top, torch.cat([words[:, 1:], words[:, :-1]]), mask

    def _layers(self, given: Spelled, mask: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Each direction's layers [B, S + 2, H] including boundaries, and the mask."""
        x = self.project(self.characters(given.letters, given.real))[given.which]  # [B, S, H]
        start = self.ends[0].to(x.dtype).expand(x.shape[0], 1, -1)
        length = mask.sum(1)
        x = torch.cat([start, x, x.new_zeros(x.shape[0], 1, x.shape[2])], 1)
        at = torch.arange(x.shape[1], device=x.device)
        x = torch.where((at == length[:, None] + 1)[..., None], self.ends[1].to(x.dtype), x)
        framed = masks.derived(_framed, mask)
        ragged = None if masks.full(framed) else framed
        ahead, back = [x], [x]
        y, z = x, masks.reverse(x, framed)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            new, _ = forwards(self.dropout(y), mask=ragged)
            y = y + new if self.residual and len(ahead) > 1 else new
            new, _ = backwards(self.dropout(z), mask=ragged)
            z = z + new if self.residual and len(back) > 1 else new
            ahead.append(y)
            back.append(masks.reverse(z, framed))
        return ahead, back, framed


def _framed(mask: Tensor) -> Tensor:
    """The mask [B, S + 2] of sentences with a boundary before and after, from theirs [B, S]."""
    return torch.arange(mask.shape[1] + 2, device=mask.device) < mask.sum(1)[:, None] + 2


class Mix(nn.Module):
    """γ Σ_j softmax(s)_j h_j: a weighted sum of layers, learned with the task; the lowest layer counts too.

    Source: Peters et al. 2018, eq. 1.

    Example:
        >>> Mix(2)([torch.zeros(1, 1, 3), torch.ones(1, 1, 3)]).tolist()
        [[[0.5, 0.5, 0.5]]]
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: list[Tensor]) -> Tensor:
        """Layers [B, S, D] to their weighted sum."""
        share = self.scores.softmax(0)
        return self.gamma * sum(part * layer for part, layer in zip(share, layers, strict=True))


class Twice(NamedTuple):
    """Sentences encoded twice: for the task's own embeddings, and for the contextual model."""

    own: Any  # input of the task's own embeddings; has to(device)
    theirs: Any  # input of the contextual model
    mask: Tensor  # [B, S] bool

    def to(self, device: torch.device) -> "Twice":
        """Move to a device."""
        return to_device(self, device)


class InContext(nn.Module):
    """[words; weighted sum of the layers of a trained model].

    Args:
        words: the task's own embeddings, with a `size`.
        model: a trained model.
        dropout: on the weighted sum.
        tuned: train the model too; otherwise it is frozen and always in evaluation mode.
    """

    def __init__(
        self, words: Words | Tokens, model: Context, *, dropout: DropoutRate = 0.3, tuned: bool = False
    ) -> None:
        super().__init__()
        self.words = words
        self.tuned = tuned
        self.model = model.requires_grad_(tuned)
        self.model.train(tuned)
        self.mix = Mix(model.num_mixed)
        self.dropout = Dropout(dropout)
        self.size = words.size + model.width

    def train(self, mode: bool = True) -> "InContext":
        """Set the mode of everything except a frozen model."""
        super().train(mode)
        self.model.train(mode and self.tuned)
        return self

    def forward(self, given: Twice) -> Tensor:
        """Sentences to [B, S, size]."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.tuned):
            layers = self.model(given.theirs, given.mask)
        return torch.cat([self.words(given.own), self.dropout(self.mix(layers))], -1)


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
