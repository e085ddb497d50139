"""ELMo: a word's vector from the sentence around it, by language models that read it from both ends.

    x_t from the letters;  h→ and h← by LSTMs, layer upon layer, which never see each other;
    p(w_{t+1} | w_1..w_t) from h→_t and p(w_{t-1} | w_t..w_n) from h←_t, one softmax for both

Read next: words.py, beside which `InContext` sets it; characters.py.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft import masks
from weft.nn.cells.lstm import LSTM
from weft.nn.embed.characters import Characters
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.nn.recurrent import Stack

BOUNDARY = 0
"""What stands before the first and after the last word, as a target; no word has this number."""


class Sentences(NamedTuple):
    """A batch of sentences."""

    given: Spelled
    mask: Tensor  # [B, S] bool
    target_tokens: int  # words and one boundary a sentence, in one direction

    def to(self, device: torch.device) -> "Sentences":
        """The same on a device."""
        return Sentences(self.given.to(device), self.mask.to(device), self.target_tokens)


class Directions(NamedTuple):
    """The loss of each direction."""

    forward: Loss
    backward: Loss


class Context(nn.Module, ABC):
    """What gives words vectors in context.

    Attributes:
        width: D, features of each layer.
        num_mixed: layers.
    """

    width: int
    num_mixed: int

    @abstractmethod
    def forward(self, given: Any, mask: Tensor) -> list[Tensor]:
        """The layers, [B, S, D] each, of words whose real ones are True in mask [B, S]."""


class BothWays(Context):
    """A forward and a backward language model that share letters and softmax.

    Args:
        num_words: V, the classes of the softmax; 0 is the boundary, 1 the unknown word.
        num_letters: letters, padding counted.
        size: H, of every layer in each direction.
        num_layers: L.
        letter_size, spelled: see `Characters`.
        residual: layers above the first add what they read.
        dropout: on the input of every layer and of the softmax.

    Source: Peters et al. 2018, sections 3.1 and 3.4; theirs has filters of seven widths with highways, and
        cells of 4096 units projected to 512; ours has one width and a projection.

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
        num_layers: int = 2,
        letter_size: int = 16,
        spelled: int = 128,
        residual: bool = True,
        dropout: float = 0.1,
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
        """The L + 1 layers [B, S, 2 H] of each word; the lowest knows nothing of the others."""
        ahead, back, _ = self._layers(given, mask)
        both = [torch.cat([x, y], -1) for x, y in zip(ahead, back, strict=True)]
        return [layer[:, 1:-1] for layer in both]

    def ahead(self, given: Spelled, mask: Tensor) -> Tensor:
        """[B, S + 1, H] from which the forward model says each word and the end."""
        return self._layers(given, mask)[0][-1][:, :-1]

    def loss(self, batch: Sentences) -> Loss:
        """Nats, both directions summed; the count is that of one direction, so it is nats a word, twice."""
        ahead, back = self.directions(batch)
        return Loss(ahead.total + back.total, ahead.count)

    def directions(self, batch: Sentences) -> Directions:
        """The losses apart: of each word and the end forward, of each and the beginning backward."""
        top, target, mask = self._asked(batch)
        rows = len(batch.mask)
        forward = self.head.loss(top[:rows], target[:rows], mask[:rows])
        return Directions(forward, self.head.loss(top[rows:], target[rows:], mask[rows:]))

    def nats(self, batch: Sentences) -> tuple[Tensor, Tensor]:
        """Of each word and the end forward, below them of each and the beginning backward.

        Returns:
            [2 B, S + 1], and a mask of the same shape, True where there is such a word.
        """
        top, target, mask = self._asked(batch)
        return -self.head(top).gather(2, target[..., None])[..., 0] * mask, mask

    def _asked(self, batch: Sentences) -> tuple[Tensor, Tensor, Tensor]:
        """Both directions, one below the other: what says the words, the words, which are real."""
        ahead, back, framed = self._layers(batch.given, batch.mask)
        words = nn.functional.pad(
            batch.given.words.masked_fill(~batch.mask, BOUNDARY), (1, 1), value=BOUNDARY
        )
        real = framed[:, 1:]
        top = self.dropout(torch.cat([ahead[-1][:, :-1], back[-1][:, 1:]]))
        target, mask = torch.cat([words[:, 1:], words[:, :-1]]), torch.cat([real, real])
        return top, target, mask

    def _layers(self, given: Spelled, mask: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Each direction's layers [B, S + 2, H], boundaries counted, and which positions are real."""
        x = self.project(self.characters(given.letters))[given.which]  # [B, S, H]
        start = self.ends[0].to(x.dtype).expand(len(x), 1, -1)
        length = mask.sum(1)
        x = torch.cat([start, x, x.new_zeros(len(x), 1, x.shape[2])], 1)
        at = torch.arange(x.shape[1], device=x.device)
        x = torch.where((at == length[:, None] + 1)[..., None], self.ends[1].to(x.dtype), x)
        framed = at < length[:, None] + 2
        ragged = None if bool(framed.all()) else framed
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


class Mix(nn.Module):
    """γ Σ_j softmax(s)_j h_j: how much of each layer a task wants, learnt with it.

    Args:
        num_layers: of h, the lowest counted.

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
        """[B, S, D] each, to one."""
        share = self.scores.softmax(0)
        return self.gamma * sum(part * layer for part, layer in zip(share, layers, strict=True))


class Twice(NamedTuple):
    """Sentences spelt twice: with a task's own numbers, and with those of the model in context."""

    own: Any  # what the task's own front end reads; has to(device)
    theirs: Any  # what the model reads
    mask: Tensor  # [B, S] bool

    def to(self, device: torch.device) -> "Twice":
        """The same on a device."""
        return Twice(self.own.to(device), self.theirs.to(device), self.mask.to(device))


class InContext(nn.Module):
    """[words; mix of the layers of a trained model, which stays as it is].

    Args:
        words: the front end of the task itself, with a `size`.
        model: trained; its parameters are frozen and it never drops anything.
        dropout: on the mixed layers.
    """

    def __init__(self, words: Words | Tokens, model: Context, *, dropout: float = 0.3) -> None:
        super().__init__()
        self.words = words
        self.model = model.requires_grad_(False).eval()
        self.mix = Mix(model.num_mixed)
        self.dropout = Dropout(dropout)
        self.size = words.size + model.width

    def train(self, mode: bool = True) -> "InContext":
        """All but the frozen model."""
        super().train(mode)
        self.model.eval()
        return self

    def forward(self, given: Twice) -> Tensor:
        """Sentences to [B, S, size]."""
        with torch.no_grad():
            layers = self.model(given.theirs, given.mask)
        return torch.cat([self.words(given.own), self.dropout(self.mix(layers))], -1)
