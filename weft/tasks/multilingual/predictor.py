"""A trained model of many language pairs: translates each text into the chosen language."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks.multilingual.data import ManyData
from weft.tasks.predictor import Answer, ParsedInput, Place, Predictor, Raw
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.translator import Alignment, Translator
from weft.text.vocabulary import Vocabulary


class ManyTranslator(Predictor[str]):
    """Translates into any language that the model writes; `to` and `of` give the translator of a direction.

    Args:
        model: in evaluation mode.
        data: the pairs, and how a source names its target language.
        vocabulary: of all languages.
        decoding: search settings.
        others: further members of an ensemble.
        scores: whether `weft predict` writes the score of each text before it.
    """

    def __init__(
        self,
        model: Generator,
        data: ManyData,
        vocabulary: Vocabulary,
        decoding: Decoding,
        *,
        others: Sequence[Generator] = (),
        scores: bool = False,
    ) -> None:
        self._others = others
        self._scores = scores
        self._model = model
        self._data = data
        self._vocabulary = vocabulary
        self._decoding = decoding

    def of(self, pair: str) -> Translator:
        """The translator of a direction such as en-de."""
        first = len(self._vocabulary)
        return Translator(
            self._model,
            self._data.asking(self._vocabulary, *pair.split("-")),
            self._vocabulary,
            self._decoding,
            banned=range(first, first + self._data.symbols),
            others=self._others,
            scores=self._scores,
            keeps=True,
            column=pair.partition("-")[0],
        )

    def to(self, target: str, source: str | None = None) -> Translator:
        """The translator into one language.

        Args:
            target: the target language.
            source: the source language; required only if the prompt names it.

        Raises:
            ConfigError: the model does not write this language, or the prompt requires a source language.
        """
        if target not in self._data.targets:
            raise ConfigError(f"--target: expected one of {', '.join(self._data.targets)}, got {target}")
        if source is None and self._data.prompt is not None and "{source}" in self._data.prompt:
            raise ConfigError("--source: this model's prompt names the source language; give it")
        return self.of(f"{source or 'any'}-{target}")

    def align(self, source: Sequence[int], target: Sequence[int]) -> Alignment:
        """The attention; see Translator.align."""
        return self.of(self._data.pairs[0]).align(source, target)

    def parse(self, raw: Raw, place: Place) -> str:
        return str(raw)

    def inputs(self, source: Path | BinaryIO) -> Iterator[ParsedInput[str]]:
        self._refuse()

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        """Raise an error: the target language is missing."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigError(f"--target: name the language to write, one of {', '.join(self._data.targets)}")

    def predict(self, raw: Any, target: str = "", source: str | None = None) -> str:
        """The best translation of one text."""
        return self.to(target, source).predict(raw) if target else self._refuse()
