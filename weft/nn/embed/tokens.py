"""Token embeddings of unit variance."""

from torch import Tensor, nn

from weft.nn.border import check_classes, explained
from weft.nn.ops import Dropout, Vectors
from weft.setting_types import DropoutRate
from weft.shapes import check_count


class Tokens(nn.Module):
    """A table with one vector per token, initialised from N(0, 1/D) and multiplied by sqrt(D).

    The table then suits a tied output layer (logits of variance 1 for features of variance 1), and its output
    suits a network (features of variance 1).
    Source: Vaswani et al. 2017, section 3.4.

    Args:
        num_tokens: V.
        size: D.
        dropout: dropout rate of the vectors.
        scaled: False omits the sqrt(D), as in GPT-2, BERT and BART.
        unknown: the symbol used for numbers beyond the table, which are a pointer's unknown source words;
            None if there are none.

    Raises:
        ConfigError: a size below 1.

    Example:
        >>> import torch
        >>> Tokens(10, 4)(torch.tensor([[3, 5]])).shape
        torch.Size([1, 2, 4])
    """

    def __init__(
        self,
        num_tokens: int,
        size: int,
        *,
        dropout: DropoutRate = 0.0,
        scaled: bool = True,
        unknown: int | None = None,
    ) -> None:
        super().__init__()
        check_count("Tokens: num_tokens", num_tokens)
        check_count("Tokens: size", size)
        self.unknown = unknown
        self.size = size
        self.scale = size**0.5 if scaled else 1.0
        self.table = nn.Embedding(num_tokens, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.dropout = Dropout(dropout)

    def check_inputs(self, tokens: Tensor) -> None:
        """Check the input of `forward`."""
        check_classes("Tokens", "tokens", tokens, self.table.num_embeddings, self.table.weight.device)

    @explained("check_inputs")
    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] int64 to [B, S, D]."""
        if self.unknown is not None:
            tokens = tokens.masked_fill(tokens >= self.table.num_embeddings, self.unknown)
        x = self.table(tokens) * self.scale
        return self.dropout(x) if self.training else x

    def vectors(self) -> Vectors:
        """The table and the scale; dropout apart, the vector of a token is its row times the scale."""
        return Vectors(self, self.table.weight, self.scale)
