"""A trained model of many pairs at work: told which language to write."""

from collections.abc import Sequence

from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks.multilingual.data import ManyData
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.translator import Alignment, Translator
from weft.text.vocabulary import Vocabulary


class ManyTranslator:
    """Translates into any language that the model writes.

    Args:
        model: in evaluation mode.
        data: the pairs, and how a source says what is wanted.
        vocabulary: of all languages.
        decoding: how to search.
        others: models that search along, as an ensemble.
    """

    def __init__(
        self,
        model: Generator,
        data: ManyData,
        vocabulary: Vocabulary,
        decoding: Decoding,
        *,
        others: Sequence[Generator] = (),
    ) -> None:
        self._others = others
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
        )

    def to(self, target: str, source: str | None = None) -> Translator:
        """The translator into one language.

        Args:
            target: what is written.
            source: what is read; only a prompt that names it needs it.

        Raises:
            ConfigError: a language that this model does not write, or a source that the prompt needs.
        """
        if target not in self._data.targets:
            raise ConfigError(f"--target {target}: this model writes {', '.join(self._data.targets)}")
        if source is None and self._data.prompt is not None and "{source}" in self._data.prompt:
            raise ConfigError("--source: the prompt of this model names it; give the language that is read")
        return self.of(f"{source or 'any'}-{target}")

    def align(self, source: Sequence[int], target: Sequence[int]) -> Alignment:
        """What the attention did; see Translator.align."""
        return self.of(self._data.pairs[0]).align(source, target)

    def predict(self, text: str, target: str, source: str | None = None) -> str:
        """The best translation of one sentence."""
        return self.to(target, source).predict(text)
