"""A recipe's section `data` for sequence pairs: files, vocabulary and batches.

Read next: ../../data/parallel.py and ../../data/corpora.py, which read them; ../../data/store.py,
which keeps tokens.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from weft.data.corpora import corpus
from weft.data.parallel import ParallelText, both, complete
from weft.data.several import Files, JoinedTexts, called, check_hold_out, each_file
from weft.errors import ConfigError, DataError, MissingSplitError
from weft.setting_types import AtLeastOne, Bounds, DropoutRate, Section, Share, Size, Whole, check_fields
from weft.tasks.seq2seq.domains import DomainText
from weft.tasks.seq2seq.glossary import AnnotatedText
from weft.tasks.task import Split
from weft.tasks.vocabulary import TextVocabulary
from weft.text import augmentation


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
