"""A recipe's section `model` for sequence pairs: encoder, decoder and embeddings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.pointer import Pointer
from weft.setting_types import DropoutRate, Features, Section, Share
from weft.text.vocabulary import UNK


@dataclass(frozen=True, kw_only=True)
class Embedding(Section):
    """How tokens are embedded.

    Args:
        size: features of a token's vector.
        dropout: share of features set to zero in training.
        shared: source and target use one table; null does so if they share a vocabulary.
        tied: the output layer uses the target's table (Press & Wolf 2017).
        scaled: vectors are multiplied by the square root of their size; see `Tokens`.
    """

    size: Features = 256
    dropout: DropoutRate = 0.1
    shared: bool | None = None
    tied: bool = True
    scaled: bool = True


@dataclass(frozen=True, kw_only=True)
class PairModel(Section):
    """An encoder and a decoder, in any combination.

    Args:
        encoder: a part of nn/encoders; null for a decoder alone that reads the source as a prompt and
            continues it.
        decoder: a part of nn/decoders; pointer copies words of the source.
        embedding: of source and target.
        smoothing: share of each target's probability spread over the vocabulary in training.
        learns: what a decoder alone learns to write: "target", or "all" (the prompt too).
    """

    encoder: Callable[..., Encoder] | None = RecurrentEncoder
    decoder: Callable[..., Decoder] = RecurrentDecoder
    embedding: Embedding = field(default_factory=Embedding)
    smoothing: Share = 0.1
    learns: Literal["target", "all"] = "target"

    @property
    def copies(self) -> bool:
        """Whether the output may copy words of the source that the vocabulary lacks."""
        made = self.decoder.func if isinstance(self.decoder, partial) else self.decoder
        return getattr(made, "copies", False)

    def build(self, source_size: int, target_size: int, *, one_vocabulary: bool) -> Generator:
        """A new model.

        Args:
            source_size, target_size: number of tokens on each side.
        """
        if self.encoder is None and not one_vocabulary:
            raise ConfigError("model.encoder: a decoder alone (null) has one vocabulary; share it")
        if self.encoder is not None and self.learns == "all":
            raise ConfigError(
                "model.learns: expected target, got all; to learn the source too, set encoder: null"
            )
        if self.copies and not one_vocabulary:
            raise ConfigError(
                "model.decoder: a pointer writes words of the source, so both sides need one vocabulary; "
                "set data.vocabulary.shared: true"
            )
        settings = self.embedding
        shared = one_vocabulary if settings.shared is None else settings.shared
        if shared and not one_vocabulary:
            raise ConfigError(
                "model.embedding.shared: expected false, because source and target have separate "
                "vocabularies; set data.vocabulary.shared: true or leave it out"
            )
        tokens = partial(
            Tokens,
            size=settings.size,
            dropout=settings.dropout,
            scaled=settings.scaled,
            unknown=UNK if self.copies else None,
        )
        embed = tokens(target_size)
        source_embed = embed if shared else tokens(source_size)
        encoder = None if self.encoder is None else self.encoder(settings.size)
        decoder = self.decoder(settings.size, encoder)
        kind = Pointer if decoder.copies else Categorical
        head = kind(
            decoder.size, target_size, smoothing=self.smoothing, tied=embed.table if settings.tied else None
        )
        if encoder is None:
            return Generator(embed, decoder, head, prompt="learned" if self.learns == "all" else "read")
        return Generator(embed, decoder, head, encoder=encoder, source_embed=source_embed)
