"""A linear CRF and a network with a CRF, whose scores are added: each is right where the other is not.

The network is trained by itself, as if the linear one were not there, which has learnt the same sentences by
heart. Read next: features.py, what the linear one reads; task.py, `TagModel`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.masks import fill, to_device
from weft.models import Labeller
from weft.nn.embed.grams import FeatureTable
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.crf import Crf
from weft.nn.heads.head import Head, Loss
from weft.nn.ops import Dropout
from weft.tasks.lexicon import Lexicon
from weft.tasks.tag.features import WordFeatures


class SpelledWithFeatures(NamedTuple):
    """Sentences as a lexicon spells them, and the features of their words."""

    spelled: Spelled
    numbers: Tensor  # [B, S, K] int64, 0 is padding

    @classmethod
    def read(
        cls, lexicon: Lexicon, features: WordFeatures, sentences: Sequence[Sequence[str]]
    ) -> tuple["SpelledWithFeatures", Tensor]:
        """Sentences [B], and their mask [B, S]."""
        spelled, mask = lexicon.spell(sentences)
        return cls(spelled, features.read(sentences)[0]), mask

    def to(self, device: torch.device) -> "SpelledWithFeatures":
        """Move to a device."""
        return to_device(self, device)

    def filled(self, columns: int) -> "SpelledWithFeatures":
        """The same sentences with more columns."""
        numbers = fill(self.numbers, len(self.numbers), columns)
        return SpelledWithFeatures(self.spelled.filled(columns), numbers)


class WithFeatures(nn.Module):
    """[words(w); e(w)] at each position, where e(w) sums a vector for each feature of the word."""

    def __init__(self, words: Words, num_features: int, size: int, *, dropout: float) -> None:
        super().__init__()
        self.words = words
        self.table = FeatureTable(num_features, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.dropout = Dropout(dropout)
        self.size = words.size + size

    def forward(self, given: SpelledWithFeatures) -> Tensor:
        """Sentences to [B, S, size]."""
        return torch.cat([self.words(given.spelled), self.dropout(self.table(given.numbers))], -1)


class SummedTagger(Labeller):
    """A network and a linear CRF over the same sentences, whose weights stay as they are."""

    def __init__(self, network: Labeller, linear: Labeller) -> None:
        assert isinstance(network.head, Crf)
        assert isinstance(linear.head, Crf)
        super().__init__(network.embed, network.encoder, SummedCrf(network.head, linear.head))
        self.table = linear.embed.requires_grad_(False)
        self.linear_encoder = linear.encoder

    def solve(self, by: Callable[[Labeller], object]) -> None:
        """Fill the linear CRF, whose weights then stay."""
        assert isinstance(self.head, SummedCrf)
        linear = Labeller(self.table, self.linear_encoder, self.head.linear).requires_grad_(True)
        by(linear)
        linear.requires_grad_(False)

    def features(self, source: SpelledWithFeatures, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the network beside the linear scores of each tag, [B, S, D + C], and the mask."""
        h, mask = super().features(source, mask)
        return torch.cat([h, self.table(source.numbers)], -1), mask


class SummedCrf(Head):
    """Two CRFs whose scores are added, except in training; its input is [h; scores of the second]."""

    def __init__(self, own: Crf, linear: Crf) -> None:
        super().__init__()
        self.own = own
        self.linear = linear.requires_grad_(False)
        self.in_size = own.in_size + linear.in_size

    def both(self, h: Tensor) -> tuple[Crf, Tensor]:
        """A CRF with the sums of transitions, and the sums of scores [.., T, C] that it reads."""
        scores = self.own.emit(h[..., : self.own.in_size]) + h[..., self.own.in_size :]
        found = Crf(self.linear.in_size, self.linear.in_size)
        found.emit = nn.Identity()
        for name in ("transitions", "begin", "end"):
            sums = self.own.get_parameter(name) + self.linear.get_parameter(name)
            setattr(found, name, nn.Parameter(sums, requires_grad=False))
        return found, scores

    def forward(self, h: Tensor) -> Tensor:
        """Log-probabilities of each tag at each position, [.., T, C], without padding."""
        crf, scores = self.both(h)
        return crf(scores)  # type: ignore[no-any-return]

    def marginals(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p(y_t = c | x), [B, T, C]."""
        crf, scores = self.both(h)
        return crf.marginals(scores, mask)

    def loss(self, h: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """-log p(target | x) of the sum; in training of the network alone."""
        if self.training:
            return self.own.loss(h[..., : self.own.in_size], target, mask)
        crf, scores = self.both(h)
        return crf.loss(scores, target, mask)

    def best(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable tag sequence, [B, T]."""
        crf, scores = self.both(h)
        return crf.best(scores, mask)
