"""A word's vector from its letters: convolution with max-pooling, or a bidirectional LSTM.

Read next: words.py, which concatenates it with word embeddings.
"""

from typing import Literal

from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.filters import FilterEncoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.ops import Dropout
from weft.nn.pools import Max, Pool, Summary
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
