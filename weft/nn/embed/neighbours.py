"""word2vec: skip-gram and CBOW with negative sampling.

Text is arranged in rows and neighbours form a band of an [L, L] matrix, so all scores are matrix products.
The N negative samples are shared by a row, each with weight K / N per neighbour, so the expected loss is
word2vec's. Read next: subwords.py, counts.py.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from weft.nn.embed.subwords import Subwords, WordTable
from weft.nn.heads.head import Loss
from weft.shapes import check_choice


class Neighbourhood(NamedTuple):
    """Rows of text."""

    words: Tensor  # [B, L] int64
    lines: Tensor  # [B, L] int64, neighbours are in the same line; -1 is padding
    reach: Tensor  # [B, L] int64, window size of each word
    noise: Tensor  # [B, N] int64, negative samples
    target_tokens: int

    def to(self, device: torch.device) -> "Neighbourhood":
        """Move to a device."""
        return Neighbourhood(*(part.to(device) for part in self[:4]), self.target_tokens)


class Neighbours(nn.Module):
    """Skip-gram: -log σ(u_t·v_s) over neighbours s of t;  CBOW: -log σ(ū_t·v_t), ū_t the mean of u_s;
    and -log σ(-u·v_n) for K negative samples n each.

    Args:
        inner: the vectors u, which are the final word vectors.
        objective: skipgram or cbow.
        num_words: V.
        negatives: K.

    Source: Mikolov et al. 2013 (Distributed representations), eq. 4. Unlike theirs, the N negative samples
    are
        shared by a row of the batch, and one may be a true neighbour.

    Example:
        >>> model = Neighbours(WordTable(7, 4), 7)
        >>> row = torch.tensor([[3, 5, 6]])
        >>> loss = model.loss(Neighbourhood(row, row * 0, row * 0 + 1, torch.tensor([[1, 2]]), 3))
        >>> int(loss.count), round(loss.total.item() / 4, 4)  # before training: 6 log 2
        (4, 4.1589)
    """

    def __init__(
        self,
        inner: WordTable | Subwords,
        num_words: int,
        *,
        objective: Literal["skipgram", "cbow"] = "skipgram",
        negatives: int = 5,
    ) -> None:
        super().__init__()
        check_choice("objective", objective, Literal["skipgram", "cbow"])
        self.inner = inner
        self.outer = WordTable(num_words, inner.size, zero=True)
        self.objective, self.negatives = objective, negatives

    def loss(self, batch: Neighbourhood) -> Loss:
        """Nats, summed; the count is the number of pairs (skip-gram) or of words (CBOW)."""
        near = self._near(batch)
        number = near.sum(2)  # [B, L]
        u, v = self.inner(batch.words), self.outer(batch.words)
        noise = self.outer(batch.noise)
        if self.objective == "cbow":
            u = (near / number.clamp(min=1)[..., None]) @ u
            number = (number > 0).to(u.dtype)
            true = (functional.softplus(-(u * v).sum(2)) * number).sum()
        else:
            true = (functional.softplus(-(u @ v.mT)) * near).sum()
        weight = number * (self.negatives / noise.shape[1])
        drawn = (functional.softplus(u @ noise.mT).sum(2) * weight).sum()
        return Loss(true + drawn, number.sum())

    def vectors(self) -> Tensor:
        """[V, D]."""
        return self.inner(
            torch.arange(self.outer.table.num_embeddings, device=self.outer.table.weight.device)
        )

    def unseen(self, word: str) -> Tensor | None:
        """The vector [D] of an unseen word; None without n-grams."""
        return self.inner.unseen(word) if isinstance(self.inner, Subwords) else None

    def _near(self, batch: Neighbourhood) -> Tensor:
        """[B, L, L] 1 if s is a neighbour of t, else 0."""
        length = batch.words.shape[1]
        at = torch.arange(length, device=batch.words.device)
        apart = (at[:, None] - at).abs()
        near = (apart <= batch.reach[..., None]) & (apart > 0)
        same = (batch.lines[..., None] == batch.lines[:, None]) & (batch.lines >= 0)[..., None]
        return (near & same).to(self.outer.table.weight.dtype)
