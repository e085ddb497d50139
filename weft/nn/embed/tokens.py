"""Token embeddings of unit variance; and with a fixed weight per word, such as idf, for bags of words."""

import torch
from torch import Tensor, nn

from weft.nn.border import check_classes, explained
from weft.nn.ops import Dropout, Vectors
from weft.setting_types import DropoutRate
from weft.shapes import check_count, check_shape


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


def idf(documents: Tensor, total: int) -> Tensor:
    """log((1 + N) / (1 + n_w)) + 1, the weight of a word that occurs in n_w of N documents; always positive.

    Source: Sparck Jones 1972; smoothed as in scikit-learn's TfidfTransformer.

    Example:
        >>> [round(w, 3) for w in idf(torch.tensor([9, 1]), 9).tolist()]
        [1.0, 2.609]
    """
    return torch.log((1 + total) / (1 + documents.double())).float() + 1


class Weighted(nn.Module):
    """w_t E(t) for each token t [B, S]; the weights [V] are constants saved with the model.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layer = Weighted(nn.Embedding(4, 3), torch.tensor([1.0, 0.0, 0.5, 1.0]))
        >>> layer(torch.tensor([[1, 3]])).shape, bool((layer(torch.tensor([[1]])) == 0).all())
        (torch.Size([1, 2, 3]), True)
    """

    weights: Tensor

    def __init__(self, embed: nn.Module, weights: Tensor) -> None:
        super().__init__()
        check_shape("weights", weights, None)
        self.embed = embed
        self.register_buffer("weights", weights)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] int64 to [B, S, D]."""
        x: Tensor = self.embed(tokens)
        return x * self.weights[tokens][..., None].to(x.dtype)


class Beside(nn.Module):
    """[E(w); a_w]: a fixed number per token, one of the constants [V], appended to its vector.

    Example:
        >>> import torch
        >>> made = Beside(torch.nn.Embedding(3, 2), torch.tensor([0.5, 1.5, 2.5]))
        >>> made(torch.tensor([[2, 0]]))[..., -1].tolist()
        [[2.5, 0.5]]
    """

    weights: Tensor

    def __init__(self, embed: nn.Module, weights: Tensor) -> None:
        super().__init__()
        self.embed = embed
        self.register_buffer("weights", weights.clone())

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, S] int64 to [B, S, D + 1]."""
        x = self.embed(tokens)
        return torch.cat([x, self.weights[tokens][..., None].to(x.dtype)], -1)
