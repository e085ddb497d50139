"""Word embeddings with a fixed weight per word, such as idf, for bags of words.

Read next: ../encoders/encoder.py, ../decoders/decoder.py.
"""

import torch
from torch import Tensor, nn

from weft.shapes import check_shape


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
