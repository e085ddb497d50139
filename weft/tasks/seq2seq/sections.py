"""The sections `data`, `model` and `decoding` of recipes for sequence pairs, and what users ask of a search.

Read next: ../../data/parallel.py and ../../data/corpora.py, which read texts; ../../data/store.py, which
keeps tokens; ../../search/offered.py, the settings of a search.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from weft.data.corpora import corpus
from weft.data.parallel import ParallelText, both, complete
from weft.data.several import Files, JoinedTexts, called, check_hold_out, each_file
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.models import Generator
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.pointer import Pointer
from weft.search.offered import Decoding, Offer, options
from weft.setting_types import (
    AtLeastOne,
    Bounds,
    DropoutRate,
    Features,
    Section,
    Share,
    Size,
    Whole,
    check_fields,
)
from weft.tasks.seq2seq.glossary import AnnotatedText, DomainText
from weft.tasks.task import EnsembleSettings, EvaluationSettings, ScoredSettings, Split
from weft.tasks.vocabulary import TextVocabulary
from weft.text import augmentation
from weft.text.vocabulary import UNK


@dataclass(frozen=True, kw_only=True)
class VocabularySettings(TextVocabulary):
    """The tokens of pairs of texts; learnt from the training side of the data alone.

    Args:
        shared: one vocabulary for both languages.
        dropout: of kind bpe, in training: probability of skipping a merge, so that a text is cut
            differently each time (BPE-dropout). 0.1 is usual; it helps most with little data.
        alpha: of kind unigram, in training: draws segmentations with probabilities to this power. 0.2 is
            usual; null always takes the likeliest.
    """

    kind: Literal["bpe", "unigram", "word", "space", "character"] = "bpe"
    size: Size | None = 4000
    shared: bool = True
    dropout: DropoutRate = 0.0
    alpha: float | None = None

    def __post_init__(self) -> None:
        augmentation.check_can_sample(self.kind, dropout=self.dropout, alpha=self.alpha)

    @property
    def sampled(self) -> bool:
        """Whether training draws other segmentations than the usual one."""
        return self.dropout > 0 or self.alpha is not None


@dataclass(frozen=True, kw_only=True)
class AugmentSettings(Section):
    """Random changes of training pairs, new in each epoch; validation and use read texts unchanged.

    Args:
        concatenate: share of the batches whose pairs are joined two by two, so that a model sees longer
            texts than the training text has; for translation.
        drop_words: probability of leaving a word of a source out.
        swap_words: probability of swapping a word of a source with the next.
        typos: probability of a typing error in a word of a source.
    """

    concatenate: Share = 0.0
    drop_words: Share = 0.0
    swap_words: Share = 0.0
    typos: Share = 0.0

    @property
    def noisy(self) -> bool:
        """Whether sources get mistakes."""
        return max(self.drop_words, self.swap_words, self.typos) > 0


@dataclass(frozen=True, kw_only=True)
class PairData:
    """The source of sentence pairs.

    Args:
        source, target: language codes: the files' suffixes, or the columns of a TSV file.
        folder: folder of train, valid and test; by default the current one.
        train, valid, test: prefixes (path/train means path/train.en and path/train.de, also compressed),
            tables (.tsv, .csv, .xlsx), memories (.tmx, .po, .xliff), or two files of any names with a comma
            between them (english.txt,german.txt). train may be a list of these and of folders.
        hold_out: without `valid`, 20 holds out one training pair of every 20 to choose the checkpoint.
        corpus: an embedded corpus instead of files.
        mixed: weights of training texts, such as {"path/more": 2.0}: of files in the list `train`, and of
            more texts, which are named as train is; all others have the weight 1.
        domains: domains of training files, such as {contracts.tmx: legal}. Their sources begin with the name
            of the domain, which `decoding.domain` gives in use.
        temperature: of the mixture (weft/data/mixture.py); 1 keeps the weighted sizes.
        glossary: a table TERM TAB TRANSLATION, such as a dictionary. In half of the training sources that
            contain a term, the translation is written after it if the target contains it, so that the model
            learns to use terms that are annotated (`decoding.terms: annotate`).
        vocabulary: see VocabularySettings.
        augment: see AugmentSettings.
        max_length: pairs with more tokens on a side are left out of training; their number is reported.
        cut_source: maximum number of tokens read of a source, in training and in use; longer sources are cut
            and counted. null reads all.
        batch_tokens: target tokens per batch, without padding.
        batch_rows: maximum number of pairs in a batch; 0 for no limit.
        validate_rows: validation pairs that are translated for BLEU; 0 for all. The loss is over all.
    """

    source: str
    target: str
    folder: Path = Path()
    train: Files | None = None
    valid: str | None = None
    test: str | None = None
    hold_out: int = 0
    corpus: str | None = None
    mixed: dict[str, float] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    temperature: Annotated[float, Bounds(ge=1)] = 1.0
    glossary: Path | None = None
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    max_length: AtLeastOne = 128
    cut_source: int | None = None
    batch_tokens: AtLeastOne = 2048
    batch_rows: Whole = 0
    validate_rows: Whole = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.source == self.target:
            raise ConfigError(f"target: {self.target!r} is the source too; name two languages")
        if self.augment.concatenate and self.batch_rows == 1:
            raise ConfigError(
                "augment.concatenate: batch_rows: 1 leaves no pairs to join; raise it or drop concatenate"
            )
        if self.cut_source is not None and not 1 <= self.cut_source <= self.max_length:
            raise ConfigError(
                f"cut_source: expected a number from 1 to max_length ({self.max_length}), "
                f"got {self.cut_source}"
            )
        if (self.corpus is None) == (self.train is None):
            raise ConfigError("set exactly one of corpus (embedded) and train (your files)")
        for path, weight in self.mixed.items():
            if not weight > 0:
                raise ConfigError(f"mixed: expected a weight above 0 for {path}, got {weight:g}")
        for path, domain in self.domains.items():
            if not re.fullmatch(r"[\w-]+", domain):
                raise ConfigError(
                    f"domains: expected a name of letters, digits, - and _ for {path}, got {domain!r}"
                )
        check_hold_out(self.hold_out, valid=self.valid, own="a corpus" if self.corpus else "")

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        held_out = split == "valid" and self.hold_out > 0
        return held_out or self.corpus is not None or getattr(self, split) is not None

    @property
    def origin(self) -> str:
        """The corpus, or the training files."""
        files = [self.train] if isinstance(self.train, str | None) else self.train
        return self.corpus or ", ".join(map(str, files))

    def find(self, split: Split) -> None:
        """Check that the texts of a split are there; raises as `open`."""
        if split == "train":
            self.texts()
        else:
            self.open(split)

    def open(self, split: Split) -> Any:
        """The pairs of a split: iterates (number, source, target)."""
        if self.corpus is not None:
            return corpus(self.corpus, self.source, self.target, split)
        if split == "train" or (split == "valid" and self.hold_out):
            own = [part.read(self, held=split == "valid") for part in self._parts() if part.own]
            return JoinedTexts(own) if own[1:] else own[0]
        path = getattr(self, split)
        if path is None:
            raise MissingSplitError.of(split, "files", "PREFIX")
        return self.at(self._placed(path))

    def complete(self, split: Split) -> tuple[list[str], list[str]]:
        """Sources and targets of a split; pairs without text on one side are left out, as in training."""
        return self._complete(split, self.open(split))

    def validation(self) -> tuple[list[str], list[str]]:
        """Those of validation as a model in training reads them: held out of a file, with its domain."""
        if not (self.hold_out and self.domains):
            return self.complete("valid")
        held = [(part.read(self, held=True), part.domain) for part in self._parts() if part.own]
        named = [DomainText(text, domain, every=True) if domain else text for text, domain in held]
        return self._complete("valid", JoinedTexts(named))

    def _complete(self, split: Split, text: Iterable[Any]) -> tuple[list[str], list[str]]:
        pairs = list(text)
        kept = complete([pair.source for pair in pairs], [pair.target for pair in pairs])
        if not kept:
            raise DataError(
                f"{self.describe(split)}: expected pairs with text on both sides, got {len(pairs):,} with "
                "an empty side; give other files"
            )
        return [pairs[n].source for n in kept], [pairs[n].target for n in kept]

    def texts(self) -> list[Any]:
        """All training texts, annotated: those of `train`, then those of the mixture."""
        texts = []
        for part in self._parts():
            text = part.read(self)
            text = text if self.glossary is None else AnnotatedText(text, self.glossary)
            texts.append(DomainText(text, part.domain) if part.domain else text)
        return texts

    @property
    def weights(self) -> list[float]:
        """Of each of `texts`."""
        return [part.weight for part in self._parts()]

    def _parts(self) -> list["TrainingPart"]:
        """The texts of `train`, files with a weight or a domain apart; then those of the mixture."""
        apart = {self._placed(name): name for name in (*self.mixed, *self.domains)}
        own: Sequence[Path | None] = [None]  # the corpus
        if isinstance(self.train, str):
            own = [self._placed(self.train)]
        elif self.train is not None:
            own = each_file([str(self._placed(name)) for name in self.train])
        for path, name in apart.items():
            if path not in own and name not in self.mixed:
                raise ConfigError(
                    f"data.domains: expected a file of data.train or data.mixed, got {name}; correct it"
                )
        rest = [path for path in own if path not in apart]
        first = TrainingPart(rest if isinstance(self.train, list) else rest[0]) if rest else None
        others = [
            TrainingPart(path, self.mixed.get(name, 1.0), self.domains.get(name, ""), path in own)
            for path, name in apart.items()
        ]
        return [first, *others] if first else others

    def _placed(self, path: str) -> Path:
        """A path inside the folder; of two files with a comma between them, both."""
        first, comma, second = path.partition(",")
        if comma and both(",".join(str(self.folder / part) for part in (first, second))) is not None:
            return Path(f"{self.folder / first},{self.folder / second}")
        return self.folder / path

    def at(self, path: Path) -> Any:
        """The pairs of other files in the same languages: a prefix, or a .tsv."""
        return ParallelText(str(path), self.source, self.target)

    def describe(self, split: Split, data: Path | None = None) -> str:
        """For signatures, such as "libreoffice-help test en-es"; of other files by their path."""
        if data is not None:
            return f"{data} {self.source}-{self.target}"
        if split == "valid" and self.hold_out:
            name = f"one pair of {self.hold_out} of {called(self.train or '')}"
        else:
            name = f"{self.corpus} {split}" if self.corpus else called(getattr(self, split) or "")
        return f"{name} {self.source}-{self.target}"


class TrainingPart(NamedTuple):
    """A training text of a recipe."""

    path: Any  # a name, a list of them, or None for the corpus
    weight: float = 1.0
    domain: str = ""
    own: bool = True  # whether it is of `train`, so that validation pairs are held out of it

    def read(self, data: PairData, *, held: bool = False) -> Any:
        """Its pairs without those held out for validation, or these."""
        if self.path is None:
            return corpus(data.corpus or "", data.source, data.target, "train")
        hold_out = data.hold_out if self.own else 0
        return ParallelText(self.path, data.source, data.target, hold_out=hold_out, held=held)


def data_in(folder: Path, train: str, *, tested: bool, inside: str = "") -> dict[str, Any]:
    """The settings of a section `data` that read its pairs from other files; see abilities.OnPairs."""
    names = {"train": train, "valid": "valid", "test": "test" if tested else None}
    files = {split: name and f"{inside}{name}" for split, name in names.items()}
    return {"corpus": None, "folder": str(folder.absolute()), "hold_out": 0, **files}


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
        """A new model for so many tokens on each side."""
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


Keeps = Literal["nothing", "texts", "parts"]
"""What answers keep of their sources: texts without letters as they are; or also parts of other texts."""

_OF_TEXTS = options(Decoding)
_DRAWN = {name: one for name, one in _OF_TEXTS.items() if name not in ("glossary", "domain", "strict")}
_SEARCHED = {name: one for name, one in _DRAWN.items() if one.search != "sample" and name != "nbest"}
_SEARCHED_OF_TEXTS = {**_SEARCHED, **{name: _OF_TEXTS[name] for name in ("glossary", "domain")}}


@dataclass(frozen=True, kw_only=True)
class DecodingSettings(EnsembleSettings):
    """What the user may change of a search."""

    asks: ClassVar[Mapping[str, Offer]] = _SEARCHED


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(DecodingSettings, ScoredSettings):
    """What the user asks of the sequences that a model writes; scores are log-probabilities per token."""

    asks: ClassVar[Mapping[str, Offer]] = _DRAWN


@dataclass(frozen=True, kw_only=True)
class TextGenerationSettings(GenerationSettings):
    """What the user asks of the texts that a model writes for a text.

    Args:
        alignments: file for the alignments of words, which the command writes.
    """

    asks: ClassVar[Mapping[str, Offer]] = _OF_TEXTS
    alignments: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationSettings(TextGenerationSettings):
    """What the user asks of translations.

    Args:
        split_sentences: translate lines of several sentences one by one.
        document: a file that the command translates.
    """

    split_sentences: bool = False
    document: Path | None = None


@dataclass(frozen=True, kw_only=True)
class GenerationEvaluationSettings(DecodingSettings, EvaluationSettings):
    """What the user asks of the scores of sequences that a model writes.

    Args:
        score: a file; score its lines instead of writing any.
    """

    score: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TextEvaluationSettings(GenerationEvaluationSettings):
    """What the user asks of the scores of texts that a model writes for a text.

    Args:
        source, target: columns of a table of other data; None for those of the recipe.
    """

    asks: ClassVar[Mapping[str, Offer]] = _SEARCHED_OF_TEXTS
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, kw_only=True)
class TranslationEvaluationSettings(TextEvaluationSettings):
    """What the user asks of the scores of translations.

    Args:
        lowercase: compute BLEU and chrF on lower-cased text.
    """

    lowercase: bool = False
