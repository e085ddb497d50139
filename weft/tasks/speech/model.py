"""A recipe's section `model` for speech: front end, encoder and decoder."""

from collections.abc import Callable
from dataclasses import dataclass, field

from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.audio import Frames
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.pyramid import Pyramid
from weft.nn.heads.categorical import Categorical
from weft.setting_types import DropoutRate, Size


@dataclass(frozen=True, kw_only=True)
class FrontSettings:
    """How frames are mapped to vectors; see nn/embed/audio.py.

    Args:
        size: features of a frame's vector.
        masks: number of masked stretches of time, and of bands, per recording in training.
        longest, widest: maximum length of these stretches, in frames and in bands.
        dropout: share of features set to zero in training.
    """

    size: Size = 80
    masks: int = 1
    longest: int = 20
    widest: int = 8
    dropout: DropoutRate = 0.0

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("masks", 0), ("longest", 0), ("widest", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class SpeechModel:
    """Listen, attend and spell, or any other encoder and decoder.

    Args:
        front: see FrontSettings.
        encoder: a part of nn/encoders; pyramid and strided shorten the sequence of frames.
        decoder: a part of nn/decoders.
        embedding: features of a character's vector.
        dropout: on the characters' vectors.
        smoothing: share of each target's probability spread over the vocabulary in training.
    """

    front: FrontSettings = field(default_factory=FrontSettings)
    encoder: Callable[..., Encoder] = Pyramid
    decoder: Callable[..., Decoder] = RecurrentDecoder
    embedding: int = 64
    dropout: DropoutRate = 0.0
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        for name in ("dropout", "smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected a share from 0 to below 1, got {getattr(self, name)}")

    def build(self, bins: int, num_tokens: int) -> Generator:
        """A new model for frames of `bins` bands and a vocabulary of `num_tokens` tokens."""
        front = self.front
        frames = Frames(
            bins,
            front.size,
            masks=front.masks,
            longest=front.longest,
            widest=front.widest,
            dropout=front.dropout,
        )
        encoder = self.encoder(front.size)
        embed = Tokens(num_tokens, self.embedding, dropout=self.dropout)
        decoder = self.decoder(self.embedding, encoder)
        head = Categorical(decoder.size, num_tokens, smoothing=self.smoothing)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=frames)
