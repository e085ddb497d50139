"""A masked language model: some tokens are hidden, and predicted from the context on both sides.

Read next: predictor.py, which fills gaps with it; task.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.masks import fill, grid, to_device
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.head import Loss
from weft.nn.heads.transformed import Transformed
from weft.setting_types import Bounds, DropoutRate, Features, Section
from weft.text.vocabulary import EOS, PAD, SOS

SPECIALS = 4
"""Number of special tokens of a vocabulary; the mask has the number after all pieces."""


class MaskedBatch(NamedTuple):
    """Lines with some tokens hidden."""

    source: Tensor  # [B, S] tokens that are read
    source_mask: Tensor  # [B, S] bool
    target: Tensor  # [B, S] the original tokens
    chosen: Tensor  # [B, S] bool, those to predict
    target_tokens: int

    def to(self, device: torch.device) -> "MaskedBatch":
        """The same batch on a device."""
        return to_device(self, device)

    def filled(self) -> "MaskedBatch":
        """The same batch with masked rows, of one padding symbol each, and columns, as in PairBatch."""
        rows, columns = grid(len(self.source)), grid(self.source.shape[1])
        source, mask, target, chosen = (fill(part, rows, columns) for part in self[:4])
        mask[len(self.source) :, 0] = True
        return MaskedBatch(source, mask, target, chosen, self.target_tokens)


def hide(lines: Sequence[Sequence[int]], size: int, *, share: float, seed: Sequence[int]) -> MaskedBatch:
    """Choose tokens, at least one per line: 80 % are masked, 10 % replaced by any piece, 10 % kept.

    Args:
        lines: one or more tokens each, without <sos> and <eos>, which are added.
        size: of the vocabulary; also the number of the mask.
        share: of the tokens, to choose.
        seed: equal seeds choose equally.

    Source: Devlin et al. 2019, section 3.1.

    Example:
        >>> hide([[5, 6]], 9, share=1.0, seed=[1]).target.tolist()
        [[2, 5, 6, 3]]
    """
    chance = np.random.default_rng(list(seed))
    target = np.full((len(lines), max(map(len, lines)) + 2), PAD)
    for row, line in enumerate(lines):
        target[row, : len(line) + 2] = [SOS, *line, EOS]
    real = target != PAD
    word = real & (target != SOS) & (target != EOS)
    drawn = np.where(word, chance.random(target.shape), 2.0)
    chosen = drawn < share
    first = drawn.argmin(1)
    chosen[np.arange(len(lines)), first] = True
    kind = chance.random(target.shape)
    other = chance.integers(SPECIALS, max(size, SPECIALS + 1), target.shape)
    source = np.where(chosen & (kind < 0.8), size, target)
    source = np.where(chosen & (kind >= 0.8) & (kind < 0.9), other, source)
    tensors = [torch.from_numpy(each) for each in (source, real, target, chosen)]
    return MaskedBatch(tensors[0], tensors[1], tensors[2], tensors[3], int(chosen.sum()))


class MaskedLanguageModel(nn.Module):
    """Predicts the chosen tokens; the predictor has V + 1 tokens, the last one the mask."""

    def __init__(self, predictor: Labeller) -> None:
        super().__init__()
        self.predictor = predictor

    def forward(self, source: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities [B, S, V + 1]."""
        return self.predictor(source, mask)  # type: ignore[no-any-return]

    def loss(self, batch: MaskedBatch) -> Loss:
        """Nats of the chosen tokens only."""
        h, _ = self.predictor.features(batch.source, batch.source_mask)
        return self.predictor.head.loss(h, batch.target, batch.chosen)


@dataclass(frozen=True, kw_only=True)
class MaskedModel(Section):
    """An encoder and the share of tokens that is hidden from it.

    Args:
        encoder: a part of nn/encoders.
        size: features of a token.
        dropout: of these features.
        scaled: vectors are multiplied by the square root of their size; see `Tokens`.
        norm_epsilon: of the norm in the output layer.
        share: of the tokens, chosen in training.

    Example:
        >>> model = MaskedModel(size=16, share=0.2).build(99)
        >>> model(torch.zeros(2, 7, dtype=torch.int64), torch.ones(2, 7) > 0).shape  # [B, S, V + 1]
        torch.Size([2, 7, 100])
    """

    encoder: Callable[..., Encoder] = TransformerEncoder
    size: Features = 128
    dropout: DropoutRate = 0.1
    scaled: bool = True
    norm_epsilon: float = 1e-5
    share: Annotated[float, Bounds(gt=0, lt=1)] = 0.15

    def build(self, size: int) -> MaskedLanguageModel:
        """A new model for a vocabulary of this size; input and output share one table, as in BERT."""
        embed = Tokens(size + 1, self.size, dropout=self.dropout, scaled=self.scaled)
        encoder = self.encoder(self.size)
        head = Transformed(encoder.size, size + 1, tied=embed.table, norm_epsilon=self.norm_epsilon)
        return MaskedLanguageModel(Labeller(embed, encoder, head))
