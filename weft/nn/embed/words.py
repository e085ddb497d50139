"""Word vectors from a table and from letters, for taggers.

Letters give a vector by convolution with max-pooling, or by a bidirectional LSTM.
Read next: tokens.py, for text without letters.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.masks import fill, grid, repeat, to_device
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.filters import FilterEncoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.ops import Dropout
from weft.nn.pools import Max, Pool, Summary
from weft.nn.randomness import for_rows, uniform
from weft.setting_types import DropoutRate, Size
from weft.shapes import check_choice

Kind = Literal["convolution", "recurrent"]


class Characters(nn.Module):
    """Letters [N, L] to word vectors [N, size]; letter 0 is padding.

    Args:
        num_characters: number of letters, including padding.
        size: features of a word's vector.
        kind: "convolution" (Ma & Hovy 2016: width 3, then max) or "recurrent" (Lample et al. 2016: the
            final states of both directions).
        letter_size: features of a letter.
        widths: of the convolution's filters, in letters; each width has an equal share of the features.
        dropout: on the letters' vectors.

    Raises:
        ConfigError: the features cannot be shared equally between the widths.

    Example:
        >>> import torch
        >>> Characters(10, 8, kind="recurrent")(torch.tensor([[3, 5], [4, 0]])).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        num_characters: int,
        size: int,
        *,
        kind: Kind = "convolution",
        letter_size: Size = 32,
        widths: tuple[int, ...] = (3,),
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        check_choice("kind", kind, Kind)
        if not widths or size % len(widths):
            raise ConfigError(
                f"widths: expected one or more that share {size} features equally, got {list(widths)}"
            )
        self.table = nn.Embedding(num_characters, letter_size)
        self.dropout = Dropout(dropout)
        self.encoder: Encoder
        self.pool: Pool
        if kind == "convolution":
            self.encoder = FilterEncoder(letter_size, widths=widths, features=size // len(widths))
            self.pool = Max(size)
        else:
            self.encoder = RecurrentEncoder(letter_size, sizes=(size // 2,), bidirectional=True)
            self.pool = Summary(2 * (size // 2))
        self.size = self.pool.size

    def forward(self, letters: Tensor, mask: Tensor | None = None) -> Tensor:
        """[N, L] int64, each row with at least one letter, to [N, size].

        Args:
            letters: 0 is padding.
            mask: [N, L] bool, False at padding.
        """
        mask = letters != 0 if mask is None else mask
        return self.pool(self.encoder(self.dropout(self.table(letters)), mask))  # type: ignore[no-any-return]


class Spelled(NamedTuple):
    """Sentences for `Words`, with the letters of each distinct word stored once.

    Example:
        >>> import torch
        >>> words = torch.tensor([[4, 5, 4]])  # [B, S]: the first word again
        >>> given = Spelled(words, letters=torch.tensor([[1, 2], [3, 0]]), which=torch.tensor([[0, 1, 0]]))
        >>> given.letters[given.which].shape  # [B, S, L]
        torch.Size([1, 3, 2])
    """

    words: Tensor  # [B, S] int64 rows of the word table
    letters: Tensor  # [N, L] int64, 0 is padding
    which: Tensor  # [B, S] int64 rows of letters
    real: Tensor | None = None  # [N, L] bool, letters that are not padding; None to compare them with 0

    def to(self, device: torch.device) -> "Spelled":
        """Move to a device."""
        return to_device(self._replace(real=self.letters != 0), device)

    def filled(self, columns: int) -> "Spelled":
        """The same sentences with more columns; letters get new columns, and rows that repeat the first."""
        words, which = (fill(part, len(part), columns) for part in (self.words, self.which))
        count, length = self.letters.shape
        letters = fill(self.letters, count, grid(length))
        letters = repeat(letters, grid(count))
        return Spelled(words, letters, which, letters != 0)


class Words(nn.Module):
    """[E(w); fixed(w); characters(w)] at each position.

    In training, words are replaced by the unknown word with probability a / (a + count), so that its vector
    is trained and the model learns to use the letters.

    Args:
        num_words: V; the table is initialised from N(0, 1/D) and multiplied by sqrt(D), as in `Tokens`.
        size: D; 0 to use only letters.
        characters: maps letters to a vector; None to use only the table.
        unknown: the number of the unknown word.
        replaced: the a above; 0 to disable.
        fixed_size: features of a second table that is not trained; `fix` fills it. Words with a count of 0
            are then the unknown word in the trained table, so that only the second one tells them apart.
        dropout: dropout rate of the output.

    Source: Kiperwasser & Goldberg 2016, section 4, for the replacement.

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
        fixed_size: Size = 0,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(num_words, size) if size else None
        if self.table is not None:
            nn.init.normal_(self.table.weight)
        self.characters = characters
        self.unknown = unknown
        self.replaced = replaced
        self.register_buffer("counts", torch.zeros(num_words))
        self.fixed: Tensor | None
        self.register_buffer("fixed", torch.zeros(num_words, fixed_size) if fixed_size else None)
        self.dropout = Dropout(dropout)
        self.size = size + fixed_size + (characters.size if characters else 0)

    def learn_from(self, counts: Tensor) -> None:
        """Set the counts [V] of words in the training data."""
        self.get_buffer("counts").copy_(counts)

    def fix(self, vectors: Tensor) -> None:
        """Fill the second table with vectors [V, fixed_size], scaled to features of variance 1."""
        assert self.fixed is not None
        there = vectors[(vectors != 0).any(1)]
        self.fixed.copy_(vectors / there.square().mean().sqrt() if len(there) else vectors)

    def forward(self, given: Spelled) -> Tensor:
        """Sentences to [B, S, size]."""
        parts = []
        if self.table is not None:
            parts.append(self.table(self._some_unknown(self._counted(given.words))))
        if self.fixed is not None:
            parts.append(nn.functional.embedding(given.words, self.fixed))
        if self.characters is not None:
            parts.append(self.characters(given.letters, given.real)[given.which])
        return self.dropout(torch.cat(parts, -1))  # type: ignore[no-any-return]

    def _counted(self, words: Tensor) -> Tensor:
        if self.fixed is None:
            return words
        return words.masked_fill(self.get_buffer("counts")[words] == 0, self.unknown)

    def _some_unknown(self, words: Tensor) -> Tensor:
        if not self.training or not self.replaced:
            return words
        chance = self.replaced / (self.replaced + self.get_buffer("counts")[words])
        draw = for_rows(lambda shape: uniform(shape, words.device), words.shape)
        return words.masked_fill(draw < chance, self.unknown)
