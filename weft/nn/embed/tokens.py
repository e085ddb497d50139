"""Token numbers become vectors of unit variance."""

from torch import Tensor, nn

from weft.nn.kernels.dropout import Dropout


class Tokens(nn.Module):
    """A table of one vector a token, drawn from N(0, 1/D), times sqrt(D).

    The table suits an output layer that shares it (logits of variance 1 for features of variance 1), its
    output suits a network (features of variance 1).
    Source: Vaswani et al. 2017, section 3.4.

    Args:
        num_tokens: V.
        size: D.
        dropout: share of features set to zero in training.
        scaled: False leaves out the sqrt(D), as GPT-2, BERT and BART do.
        unknown: the symbol as which numbers beyond the table are read, the words that a text lends to a
            pointer; None where there are none.

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
        dropout: float = 0.0,
        scaled: bool = True,
        unknown: int | None = None,
    ) -> None:
        super().__init__()
        self.unknown = unknown
        self.size = size
        self.scale = size**0.5 if scaled else 1.0
        self.table = nn.Embedding(num_tokens, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] int64 to [B, S, D]."""
        if self.unknown is not None:
            tokens = tokens.masked_fill(tokens >= self.table.num_embeddings, self.unknown)
        return self.dropout(self.table(tokens) * self.scale)
