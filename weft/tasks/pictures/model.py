"""A recipe's section `model` for tasks on pictures: front end, encoder, decoder or pool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from weft.models import Generator, Labeller
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import BagEncoder, Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.pictures.convolution import ConvolutionFront
from weft.nn.pictures.front import Front
from weft.nn.pools import Mean, Pool
from weft.setting_types import DropoutRate, Features, Section, Share


@dataclass(frozen=True, kw_only=True)
class CaptionModel(Section):
    """A front end for pictures, an encoder of its places, and a decoder that attends to them.

    Args:
        front: a part of nn/pictures: convolution, patches, or regions of given features.
        encoder: a part of nn/encoders; `bag` leaves the front end's places unchanged.
        decoder: a part of nn/decoders.
        size: features of a word's vector.
        dropout: share of a word's features set to zero in training.
        smoothing: share of each word's probability spread over the vocabulary in training.
    """

    renamed: ClassVar[Mapping[str, str]] = {"width": "size"}

    front: Callable[..., Front] = ConvolutionFront
    encoder: Callable[..., Encoder] = BagEncoder
    decoder: Callable[..., Decoder] = RecurrentDecoder
    size: Features = 128
    dropout: DropoutRate = 0.1
    smoothing: Share = 0.0

    def build(self, shape: tuple[int, ...], words: int) -> Generator:
        """A new model for pictures of shape `shape` and a vocabulary of `words` words."""
        front = self.front(shape)
        encoder = self.encoder(front.size)
        embed = Tokens(words, self.size, dropout=self.dropout)
        decoder = self.decoder(self.size, encoder)
        head = Categorical(decoder.size, words, smoothing=self.smoothing)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=front)


@dataclass(frozen=True, kw_only=True)
class ImageModel(Section):
    """A front end for pictures, an encoder of its places, a pool and a classifier.

    Args:
        front: a part of nn/pictures.
        encoder: a part of nn/encoders; `bag` leaves the front end's places unchanged.
        pool: a part of nn/pools.py.
        smoothing: share of each class's probability spread over all of them in training.
    """

    front: Callable[..., Front] = ConvolutionFront
    encoder: Callable[..., Encoder] = BagEncoder
    pool: Callable[..., Pool] = Mean
    smoothing: Share = 0.0

    def build(self, shape: tuple[int, ...], classes: int) -> Labeller:
        """A new model for pictures or clips of shape `shape`."""
        front = self.front(shape)
        encoder = self.encoder(front.size)
        pool = self.pool(encoder.size)
        return Labeller(front, encoder, Categorical(pool.size, classes, smoothing=self.smoothing), pool=pool)


@dataclass(frozen=True, kw_only=True)
class DrawModel(Section):
    """An encoder of words, and a decoder that writes a picture's tiles in reading order.

    Args:
        encoder: a part of nn/encoders.
        decoder: a part of nn/decoders.
        size: features of the vectors of words and tiles.
        dropout: share of their features set to zero in training.
    """

    renamed: ClassVar[Mapping[str, str]] = {"width": "size"}

    encoder: Callable[..., Encoder] = RecurrentEncoder
    decoder: Callable[..., Decoder] = TransformerDecoder
    size: Features = 128
    dropout: DropoutRate = 0.0

    def build(self, words: int, tiles: int) -> Generator:
        """A new model for these numbers of words and tiles, both with the four special symbols."""
        encoder = self.encoder(self.size)
        embed = Tokens(tiles, self.size, dropout=self.dropout)
        decoder = self.decoder(self.size, encoder)
        head = Categorical(decoder.size, tiles)
        source = Tokens(words, self.size, dropout=self.dropout)
        return Generator(embed, decoder, head, encoder=encoder, source_embed=source)


def places_of(front: Callable[..., Front], shape: tuple[int, ...]) -> int:
    """The number of places of a front end for a picture; draws no random numbers."""
    with torch.device("meta"):  # without weights
        return front(shape).places
