"""word2vec, skip-gram and CBOW with negative sampling; and GloVe, from co-occurrence counts.

Text is arranged in rows. The N negative samples are shared by a row, each with weight K / N per neighbour,
so the expected loss is word2vec's. A word's vector is from a table, or the mean over its character n-grams
(fastText). Read next: ../kernels/losses.py.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from weft.masks import static, to_device
from weft.nn.heads.head import Loss
from weft.nn.ops import Places, word2vec
from weft.shapes import check_choice

_START, _PRIME, _BITS = 2166136261, 16777619, 0xFFFFFFFF


def ngrams(word: str, shortest: int, longest: int) -> list[str]:
    """The character n-grams of <word>, except < and > alone."""
    marked = f"<{word}>"
    return [
        marked[start:end]
        for start in range(len(marked))
        for end in range(start + shortest, min(start + longest, len(marked)) + 1)
        if end - start > 1
    ]


def bucket(gram: str, buckets: int) -> int:
    """The bucket of an n-gram: FNV-1a over its signed bytes, as in fastText and gensim."""
    found = _START
    for byte in gram.encode("utf-8"):
        found = ((found ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _PRIME) & _BITS
    return found % buckets


class WordTable(nn.Module):
    """One vector per word, from U(-1/2D, 1/2D) as in word2vec, or `zero`, as its output vectors."""

    def __init__(self, num_words: int, size: int, *, zero: bool = False) -> None:
        super().__init__()
        self.size = size
        self.table = nn.Embedding(num_words, size)
        with torch.no_grad():
            half = 0.0 if zero else 0.5 / size
            self.table.weight.uniform_(-half, half)

    def forward(self, words: Tensor) -> Tensor:
        """[...] int64 to [..., D]."""
        return self.table(words)

    def gathered(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """A table [., D] and the rows [...] of it that are the vectors of words [...]."""
        return self.table.weight, words


class Subwords(nn.Module):
    """(e_w + Σ_g z_g) / (1 + G) over the G n-grams g of word w; n-grams are hashed to `buckets` rows.

    Args:
        words: the vocabulary.
        size: D.
        shortest, longest: length of n-grams, including < and >.
        buckets: rows for n-grams.

    Source: Bojanowski et al. 2017, section 3.2; with the mean instead of the sum, as in their program.

    Example:
        >>> Subwords(["cat", "cats"], 3, shortest=3, longest=4, buckets=50)(torch.tensor([[1, 1]])).shape
        torch.Size([1, 2, 3])
    """

    def __init__(
        self, words: Sequence[str], size: int, *, shortest: int = 3, longest: int = 6, buckets: int = 50_000
    ) -> None:
        super().__init__()
        self.size, self.shortest, self.longest, self.buckets = size, shortest, longest, buckets
        self.num_words = len(words)
        self.bag = nn.EmbeddingBag(len(words) + buckets, size, mode="mean")
        with torch.no_grad():
            self.bag.weight.uniform_(-1 / size, 1 / size)
        rows = [torch.tensor([number, *self.rows(word)]) for number, word in enumerate(words)]
        lengths = torch.tensor([len(row) for row in rows])
        self.register_buffer("_rows", torch.cat(rows), persistent=False)
        self.register_buffer("_ends", lengths.cumsum(0), persistent=False)

    def rows(self, word: str) -> list[int]:
        """The rows of a word's n-grams."""
        grams = ngrams(word, self.shortest, self.longest)
        return [self.num_words + bucket(gram, self.buckets) for gram in grams]

    def forward(self, words: Tensor) -> Tensor:
        """[...] int64 to [..., D]."""
        table, which = self.gathered(words)
        return functional.embedding(which, table)

    def gathered(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """See WordTable.gathered; each distinct word is computed once."""
        if static():
            raise NotImplementedError("the distinct words of a batch are counted")
        different, which = words.unique(return_inverse=True)
        ends = self.get_buffer("_ends")[different]
        begins = torch.where(different > 0, self.get_buffer("_ends")[different - 1], 0)
        lengths = ends - begins
        offsets = lengths.cumsum(0) - lengths
        within = torch.arange(int(lengths.sum()), device=words.device)
        taken = within + torch.repeat_interleave(begins - offsets, lengths)
        return self.bag(self.get_buffer("_rows")[taken], offsets), which

    def unseen(self, word: str) -> Tensor:
        """The vector [D] of an unknown word, the mean over its n-grams; zero if it has none."""
        rows = torch.tensor([self.rows(word)], device=self.bag.weight.device)
        return self.bag(rows)[0] if rows.numel() else self.bag.weight.new_zeros(self.size)


class Neighbourhood(NamedTuple):
    """Rows of text."""

    words: Tensor  # [B, L] int64
    lines: Tensor  # [B, L] int64, neighbours are in the same line; -1 is padding
    reach: Tensor  # [B, L] int64, window size of each word
    noise: Tensor  # [B, N] int64, negative samples
    target_tokens: int

    def to(self, device: torch.device) -> "Neighbourhood":
        """Move to a device."""
        return to_device(self, device)


class Neighbours(nn.Module):
    """Skip-gram: -log σ(u_t·v_s) over neighbours s of t;  CBOW: -log σ(ū_t·v_t), ū_t the mean of u_s;
    and -log σ(-u·v_n) for K negative samples n each.

    Args:
        inner: the vectors u, which are the final word vectors.
        objective: skipgram or cbow.
        num_words: V.
        negatives: K.

    Attributes:
        sparse_gradients: whether gradients may be sparse tensors; an optimiser that supports them sets it.

    Raises:
        ConfigError: an unknown objective.

    Source: Mikolov et al. 2013 (Distributed representations), eq. 4. Unlike theirs, the N negative samples
    are shared by a row of the batch, and one may be a true neighbour.

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
        self.sparse_gradients = False

    def loss(self, batch: Neighbourhood) -> Loss:
        """Nats, summed; the count is the number of pairs (skip-gram) or of words (CBOW)."""
        u, inner = self.inner.gathered(batch.words)
        places = Places(inner, batch.words, batch.lines, batch.reach, batch.noise)
        v, cbow = self.outer.table.weight, self.objective == "cbow"
        return Loss(*word2vec(u, v, places, self.negatives, cbow=cbow, sparse=self.sparse_gradients))

    def vectors(self) -> Tensor:
        """[V, D]."""
        return self.inner(
            torch.arange(self.outer.table.num_embeddings, device=self.outer.table.weight.device)
        )

    def unseen(self, word: str) -> Tensor | None:
        """The vector [D] of an unseen word; None without n-grams."""
        return self.inner.unseen(word) if isinstance(self.inner, Subwords) else None


class Cells(NamedTuple):
    """Cells of the co-occurrence table."""

    words: Tensor  # [N] int64
    others: Tensor  # [N] int64
    counts: Tensor  # [N] X, positive
    target_tokens: int

    def to(self, device: torch.device) -> "Cells":
        """Move to a device."""
        return to_device(self, device)


class Glove(nn.Module):
    """f(X_ij) (w_i·w̃_j + b_i + b̃_j - log X_ij)²,  f(x) = min(1, (x / x_max)^α).

    Args:
        num_words: V.
        size: D.
        most: x_max.
        alpha: α.

    Source: Pennington et al. 2014, eq. 8 and 9; a word's vector is w + w̃ (their section 4.2).

    Example:
        >>> cells = Cells(torch.tensor([1]), torch.tensor([2]), torch.tensor([100.0]), 1)
        >>> loss = Glove(5, 3).loss(cells)
        >>> bool(loss.total > 0), int(loss.count)
        (True, 1)
    """

    def __init__(self, num_words: int, size: int, *, most: float = 100.0, alpha: float = 0.75) -> None:
        super().__init__()
        self.inner, self.outer = WordTable(num_words, size), WordTable(num_words, size)
        self.inner_bias, self.outer_bias = (WordTable(num_words, 1, zero=True) for _ in range(2))
        self.most, self.alpha = most, alpha

    def loss(self, batch: Cells) -> Loss:
        """Weighted squared error, summed; the count is the number of cells."""
        product = (self.inner(batch.words) * self.outer(batch.others)).sum(1)
        bias = self.inner_bias(batch.words)[:, 0] + self.outer_bias(batch.others)[:, 0]
        weight = (batch.counts / self.most).clamp(max=1) ** self.alpha
        total = (weight * (product + bias - batch.counts.log()).square()).sum()
        return Loss(total, total.new_full((), len(batch.words), dtype=torch.int64))

    def vectors(self) -> Tensor:
        """[V, D]."""
        return self.inner.table.weight + self.outer.table.weight

    def unseen(self, word: str) -> Tensor | None:
        """None: there are no vectors of unseen words."""
        return None
