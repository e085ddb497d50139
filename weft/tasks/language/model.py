"""A recipe's section `model` for running text: a decoder without an encoder."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from weft import tree
from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.beside import Beside
from weft.nn.embed.tokens import Tokens
from weft.nn.heads.adaptive import Adaptive
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Head
from weft.setting_types import DropoutRate, Size


@dataclass(frozen=True, kw_only=True)
class TokenEmbedding:
    """How tokens are embedded.

    Args:
        size: features of a token's vector.
        dropout: share of features set to zero in training.
        tied: the output layer uses the same table (Press & Wolf 2017).
        scaled: vectors are multiplied by the square root of their size; see `Tokens`.
        bias: whether the output layer has a bias; GPT-2 and Llama have none.
        cutoffs: numbers of tokens where groups of rarer tokens begin, such as [400, 3000]: an adaptive
            softmax, which makes training with thousands of words faster (nn/heads/adaptive.py). Tokens must
            be ordered by frequency: vocabulary.kind space, word or character. Empty for one softmax.
    """

    size: Size = 200
    dropout: DropoutRate = 0.1
    tied: bool = True
    scaled: bool = True
    bias: bool = True
    cutoffs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"size: expected at least 1, got {self.size}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, got {self.dropout}")


@dataclass(frozen=True, kw_only=True)
class ProseModel:
    """A language model: p(w_i | w_1 .. w_i-1).

    Args:
        decoder: a part of nn/decoders: recurrent, transformer, bag, ...
        embedding: of the tokens.
        smoothing: share of each target's probability spread over the vocabulary in training.
    """

    decoder: Callable[..., Decoder] = RecurrentDecoder
    embedding: TokenEmbedding = field(default_factory=TokenEmbedding)
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigError(f"smoothing: expected a share from 0 to below 1, got {self.smoothing}")
        if self.smoothing and self.embedding.cutoffs:
            raise ConfigError(
                "smoothing: cannot be combined with embedding.cutoffs, whose groups are trained apart; "
                "leave one of them out"
            )

    @property
    def least(self) -> int:
        """The smallest number of tokens that it can be built for."""
        return 1 + max(self.embedding.cutoffs, default=0)

    def build(self, size: int, weights: Tensor | None = None) -> Generator:
        """A new model.

        Args:
            size: V, tokens.
            weights: [V] the idf of each token, for a decoder that weighs tokens; ones if unknown or if loaded
                with the model's weights.
        """
        settings = self.embedding
        decoder = self.decoder(settings.size)
        tokens = Tokens(size, settings.size, dropout=settings.dropout, scaled=settings.scaled)
        embed: nn.Module = tokens
        if decoder.weighted:
            decoder = self.decoder(settings.size + 1)
            embed = Beside(tokens, torch.ones(size) if weights is None else weights)
        tied = tokens.table if settings.tied else None
        head: Head
        if settings.cutoffs:
            head = Adaptive(decoder.size, size, cutoffs=settings.cutoffs, tied=tied, bias=settings.bias)
        else:
            head = Categorical(decoder.size, size, smoothing=self.smoothing, tied=tied, bias=settings.bias)
        return Generator(embed, decoder, head)


def grows(model: Generator) -> bool:
    """Whether a model's state grows with the text, so that it cannot be carried on without limit."""
    state = model.start(None, torch.ones(2, 1, dtype=torch.bool))
    _, after = model.step(torch.zeros(2, dtype=torch.int64), state)

    def shapes(one: object) -> list[torch.Size]:
        return [leaf.shape for leaf in tree.leaves(one) if isinstance(leaf, Tensor)]

    return shapes(state) != shapes(after)
