"""Word vectors for word2vec: a table, or the mean over a word's character n-grams (fastText).

Read next: neighbours.py, which trains them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from weft.masks import static

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
