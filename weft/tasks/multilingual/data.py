"""A recipe's section `data` for many language pairs at once, and how a source names the target."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from weft.data.languages import NAMES
from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Bounds, Whole, check_fields
from weft.tasks.seq2seq.batch_search import SourceVocabulary
from weft.tasks.seq2seq.sections import AugmentSettings, PairData, VocabularySettings
from weft.tasks.task import Split
from weft.text.vocabulary import Vocabulary, Word


@dataclass(frozen=True, kw_only=True)
class ManyData:
    """Sentence pairs in several directions for one model.

    Args:
        pairs: directions such as en-de; each is trained.
        zero_shot: directions that are scored but not trained.
        temperature: of the mixture of the pairs, see weft/data/mixture.py; 1 keeps their sizes.
        prompt: how a source names its target language. null puts a symbol of the language before it
            (Johnson et al. 2017). A text puts words there, with {source}, {target} (names of the languages)
            and {text}: "Translate from {source} to {target}: {text}".
        names: names of languages in prompts, instead of the usual English names.
        folder, train, valid, test: as for one pair; languages replace {source}, {target} and {pair},
            as in train: "{pair}/train".
        hold_out: without `valid`, 20 holds out one training line of every 20, the same ones of each pair.
        corpus: an embedded corpus instead of files.
        vocabulary: one for all languages.
        augment: see AugmentSettings; pairs with the same target language are joined. Not with a prompt.
        max_length, batch_tokens, batch_rows, validate_rows: as for one pair; validate_rows of each pair.
    """

    pairs: tuple[str, ...]
    zero_shot: tuple[str, ...] = ()
    temperature: Annotated[float, Bounds(ge=1)] = 1.0
    prompt: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    train: str | None = None
    valid: str | None = None
    test: str | None = None
    hold_out: int = 0
    corpus: str | None = None
    vocabulary: VocabularySettings = field(default_factory=lambda: VocabularySettings(size=8000))
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    max_length: AtLeastOne = 128
    batch_tokens: AtLeastOne = 2048
    batch_rows: Whole = 0
    validate_rows: Whole = 100

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.pairs:
            raise ConfigError("pairs: expected at least one direction such as en-de, got an empty list")
        every = [*self.pairs, *self.zero_shot]
        for pair in every:
            if pair.count("-") != 1 or not all(pair.split("-")):
                raise ConfigError(f"pairs: expected a direction such as en-de, got {pair!r}")
            if every.count(pair) > 1:
                raise ConfigError(
                    f"pairs: expected each direction once (zero_shot counts too), got {pair} twice; "
                    "leave one out"
                )
        targets = {pair.split("-")[1] for pair in self.pairs}
        for pair in self.zero_shot:
            if pair.split("-")[1] not in targets:
                raise ConfigError(f"zero_shot: no trained pair has the target language of {pair}")
        if self.prompt is not None and "{text}" not in self.prompt:
            raise ConfigError("prompt: {text} is missing; put it where the source goes")
        if self.prompt is not None and (self.augment.noisy or self.augment.concatenate):
            raise ConfigError("augment: would change the words of the prompt; leave out augment or prompt")
        if not self.vocabulary.shared:
            raise ConfigError("vocabulary: expected shared: true, as all languages have one vocabulary here")
        for pair in every:
            self.of(pair)

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        return self.of(self.pairs[0]).has(split)

    def find(self, split: Split) -> None:
        """Check that the texts of a split are there, for each trained pair."""
        for pair in self.pairs:
            self.of(pair).open(split)

    @property
    def targets(self) -> list[str]:
        """The target languages, in a fixed order."""
        return sorted({pair.split("-")[1] for pair in self.pairs})

    def of(self, pair: str) -> PairData:
        """The data of one direction."""
        source, target = pair.split("-")

        def named(path: str | None) -> str | None:
            return path and path.replace("{pair}", pair).replace("{source}", source).replace(
                "{target}", target
            )

        return PairData(
            source=source,
            target=target,
            folder=self.folder,
            train=named(self.train),
            valid=named(self.valid),
            test=named(self.test),
            hold_out=self.hold_out,
            corpus=self.corpus,
            vocabulary=self.vocabulary,
            augment=self.augment,
            max_length=self.max_length,
            batch_tokens=self.batch_tokens,
            batch_rows=self.batch_rows,
        )

    def asking(self, vocabulary: Vocabulary, source: str, target: str) -> "DirectionReader":
        """The vocabulary of sources in one language, with a given target language."""
        if self.prompt is None:
            tag = len(vocabulary) + self.targets.index(target)
            return DirectionReader(vocabulary, tag=tag, target=target)
        words = self.prompt.replace("{source}", self.name(source)).replace("{target}", self.name(target))
        return DirectionReader(vocabulary, prompt=words, target=target)

    def name(self, language: str) -> str:
        """The name of a language in a prompt."""
        return self.names.get(language, NAMES.get(language, language))

    @property
    def symbols(self) -> int:
        """Symbols of the target languages, numbered after the pieces of the vocabulary."""
        return 0 if self.prompt is not None else len(self.targets)


class DirectionReader(SourceVocabulary):
    """A vocabulary whose sources begin with the symbol of the target language, or are parts of a prompt."""

    def __init__(
        self, vocabulary: Vocabulary, *, tag: int | None = None, prompt: str = "{text}", target: str = ""
    ) -> None:
        self.base = vocabulary
        self.first = () if tag is None else (tag,)
        self.prompt = prompt
        self._tag = tag
        self._target = target

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        real = [place for place, text in enumerate(texts) if text.strip()]
        found = self.base.encode_batch([self.prompt.replace("{text}", texts[n]) for n in real])
        rows: list[list[int]] = [[] for _ in texts]
        for place, row in zip(real, found, strict=True):
            rows[place] = row if self._tag is None else [self._tag, *row]
        return rows

    def pieces(self, ids: Sequence[int]) -> list[str]:
        shown = f"<2{self._target}>"
        return [shown if number == self._tag else self.base.pieces([number])[0] for number in ids]

    def words(self, ids: Sequence[int], text: str | None = None) -> list[Word]:
        """Without the symbol of the language."""
        first = 1 if self._tag is not None and len(ids) and ids[0] == self._tag else 0
        return [
            Word(word.text, [place + first for place in word.positions])
            for word in self.base.words(ids[first:], text)
        ]

    def extended(self, pieces: Sequence[str]) -> "DirectionReader":
        base = self.base.extended(pieces)
        return DirectionReader(base, tag=self._tag, prompt=self.prompt, target=self._target)
