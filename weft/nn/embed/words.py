"""Words as vectors from a table and from their letters, for taggers.

Read next: characters.py; tokens.py, for text without letters.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.embed.characters import Characters
from weft.nn.kernels.dropout import Dropout
from weft.randomness import for_rows, open_generator


class Spelled(NamedTuple):
    """Sentences for `Words`: the letters of each different word stand there once."""

    words: Tensor  # [B, S] int64 numbers in the table
    letters: Tensor  # [N, L] int64, 0 is padding
    which: Tensor  # [B, S] int64 rows of letters

    def to(self, device: torch.device) -> "Spelled":
        """The same on a device."""
        return Spelled(*(part.to(device) for part in self))


class Words(nn.Module):
    """[E(w); characters(w)] at each position.

    In training a word is now and then taken for an unknown one, rare words more often, so that the vector
    of unknown words is learnt and the letters are listened to: with probability a / (a + count).

    Args:
        num_words: V; the table is drawn from N(0, 1/D), times sqrt(D), as `Tokens` does.
        size: D; 0 for letters alone.
        characters: letters to a vector; None for the table alone.
        unknown: the number of the unknown word.
        replaced: the a above; 0 replaces none.
        dropout: share of features set to zero in training.

    Source: Kiperwasser & Goldberg 2016, section 4, for the replacing.

    Example:
        >>> import torch
        >>> given = Spelled(torch.tensor([[4, 5]]), torch.tensor([[1], [2]]), torch.tensor([[0, 1]]))
        >>> Words(7, 6, characters=Characters(3, 4))(given).shape
        torch.Size([1, 2, 10])
    """

    def __init__(
        self,
        num_words: int,
        size: int,
        *,
        characters: Characters | None = None,
        unknown: int = 1,
        replaced: float = 0.25,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(num_words, size) if size else None
        if self.table is not None:
            nn.init.normal_(self.table.weight)
        self.characters = characters
        self.unknown = unknown
        self.replaced = replaced
        self.register_buffer("counts", torch.zeros(num_words))
        self.dropout = Dropout(dropout)
        self.size = size + (characters.size if characters else 0)

    def learn_from(self, counts: Tensor) -> None:
        """How often each word stands in the training data, [V]."""
        self.get_buffer("counts").copy_(counts)

    def forward(self, given: Spelled) -> Tensor:
        """Sentences to [B, S, size]."""
        parts = []
        if self.table is not None:
            parts.append(self.table(self._some_unknown(given.words)))
        if self.characters is not None:
            parts.append(self.characters(given.letters)[given.which])
        return self.dropout(torch.cat(parts, -1))  # type: ignore[no-any-return]

    def _some_unknown(self, words: Tensor) -> Tensor:
        if not self.training or not self.replaced:
            return words
        chance = self.replaced / (self.replaced + self.get_buffer("counts")[words])
        drawn = for_rows(lambda shape: torch.rand(shape, generator=open_generator()), words.shape)
        drawn = drawn.to(words.device)
        return words.masked_fill(drawn < chance, self.unknown)
