"""A recipe's section `model` for tagging: an embedding of words and letters, an encoder and a head."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from weft.errors import ConfigError
from weft.models import Labeller
from weft.nn.embed.characters import Characters
from weft.nn.embed.contextual import Context, InContext
from weft.nn.embed.words import Words
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.crf import Crf
from weft.nn.heads.head import Head
from weft.setting_types import DropoutRate, Size
from weft.tasks.labels.base import ClassWeights, check_weights


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How words become vectors.

    Args:
        size: features of a word's vector from the table; 0 for letters alone.
        characters: how letters are read: convolution, recurrent, or none.
        letter_size: features of a letter.
        widths: numbers of letters that the convolution's filters read; each width has an equal share of the
            features.
        spelled: features of the vector that is made of the letters.
        replaced: in training, a word seen n times is replaced by the unknown word with probability
            replaced / (replaced + n).
        vectors: a text file of word2vec or GloVe vectors of this size that the table begins with.
        fixed: leave the vectors as they are, in a second table beside the trained one; better for words that
            training never saw.
        contextual: a run of the task elmo or masked, whose vectors of words in context are appended.
        tuned: train the model of that run further too; otherwise it stays as it is.
        dropout: share of features that is set to zero in training.
    """

    size: Size = 100
    characters: Literal["convolution", "recurrent", "none"] = "convolution"
    letter_size: Size = 32
    widths: tuple[int, ...] = (3,)
    spelled: int = 64
    replaced: float = 0.25
    vectors: Path | None = None
    fixed: bool = False
    contextual: Path | None = None
    tuned: bool = False
    dropout: DropoutRate = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, got {self.dropout}")
        for name, least in (("size", 0), ("letter_size", 1), ("spelled", 2), ("replaced", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if self.tuned and self.contextual is None:
            raise ConfigError("tuned: expected contextual, the run whose model is trained further")
        if self.fixed and self.vectors is None:
            raise ConfigError("fixed: true needs vectors; set vectors, or leave fixed out")
        if self.size == 0 and self.characters == "none":
            raise ConfigError("size: expected at least 1 without characters, got 0; give one of them")


@dataclass(frozen=True, kw_only=True)
class TagModel:
    """An encoder over words, and a head over its states.

    Args:
        encoder: a part of nn/encoders.
        embedding: of words and letters.
        crf: choose all tags of a sentence together (Lample et al. 2016), not each by itself.
        smoothing: share of each tag's probability that training spreads over all tags; not with a CRF.
        class_weights: balanced gives every tag the same weight in training, however rare it is: a word with
            tag c counts N / (C n_c), where n_c of the N training words have one of the C tags. Or your own
            weights, such as {PROPN: 3}; tags that are left out count 1. Not with a CRF.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    embedding: Spelling = field(default_factory=Spelling)
    crf: bool = False
    smoothing: float = 0.0
    class_weights: ClassWeights = "none"

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ConfigError(f"smoothing: expected a share from 0 to below 1, got {self.smoothing}")
        if self.crf and self.smoothing:
            raise ConfigError(f"smoothing: expected 0 with a CRF, got {self.smoothing}")
        if self.crf and self.class_weights != "none":
            raise ConfigError(
                "class_weights: expected none with a CRF, which scores the tags of a sentence together; set "
                "crf: false, or leave class_weights out"
            )
        check_weights(self.class_weights)

    def build(
        self,
        num_words: int,
        num_letters: int,
        num_tags: int,
        contextual: Context | None = None,
        *,
        weights: Sequence[float] = (),
    ) -> Labeller:
        """A new model.

        Args:
            num_words, num_letters, num_tags: rows of its tables, and C.
            contextual: a trained model of words in context.
            weights: of each tag in the loss of training; empty for 1.
        """
        how = self.embedding
        characters = None
        if how.characters != "none":
            characters = Characters(
                num_letters,
                how.spelled,
                kind=how.characters,
                letter_size=how.letter_size,
                widths=how.widths,
            )
        words = Words(
            num_words,
            how.size,
            characters=characters,
            replaced=how.replaced,
            fixed_size=how.size if how.fixed else 0,
            dropout=how.dropout,
        )
        embed = (
            words
            if contextual is None
            else InContext(words, contextual, dropout=how.dropout, tuned=how.tuned)
        )
        encoder = self.encoder(embed.size)
        head: Head = (
            Crf(encoder.size, num_tags)
            if self.crf
            else Categorical(encoder.size, num_tags, smoothing=self.smoothing, class_weights=weights)
        )
        return Labeller(embed, encoder, head)
