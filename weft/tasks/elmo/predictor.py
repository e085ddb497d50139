"""ELMo, trained: the vectors of a word in its sentence, and one word in two sentences."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import DataError
from weft.nn.embed.contextual import BOUNDARY, BothWays
from weft.tasks import predictor
from weft.tasks.lexicon import Lexicon
from weft.tasks.predictor import Answer, Given, Json, Place, Raw
from weft.tasks.running_text.data import ProseData
from weft.tasks.running_text.sentences import words_of

END = "<end>"
WORDS = 200
"""Maximum number of words of a sentence whose vectors are an answer."""


class InSentence(NamedTuple):
    """A sentence and its vectors."""

    words: list[str]
    layers: np.ndarray  # [L + 1, S, 2 H], the lowest layer first


class Asked(NamedTuple):
    """A word in two sentences, or a sentence alone."""

    sentences: list[list[str]]  # their words
    word: str = ""  # as it was given; "" of a sentence alone
    at: Sequence[int] = ()  # its place in each sentence


class Compared(Answer):
    """A word in two sentences.

    Args:
        word: as it was given.
        cosines: [L + 1] of its two vectors in each layer, the lowest layer first.
    """

    def __init__(self, word: str, cosines: list[float]) -> None:
        self._word = word
        self._cosines = cosines

    def text(self) -> str:
        """The word and the cosines, tabs between them."""
        return "\t".join([self._word, *(f"{cosine:.4f}" for cosine in self._cosines)])

    def json(self) -> Json:
        """The word and the cosines."""
        return {"word": self._word, "cosines": list(self._cosines)}


class Embedded(Answer):
    """A sentence and the vectors of its words in the top layer."""

    def __init__(self, found: InSentence) -> None:
        self._found = found

    def text(self) -> str:
        """The words."""
        return " ".join(self._found.words)

    def json(self) -> Json:
        """The words and their vectors."""
        return {"words": list(self._found.words), "vectors": np.round(self._found.layers[-1], 5).tolist()}


class Comparer(predictor.Predictor[Asked]):
    """Vectors in context.

    Args:
        model: trained, in evaluation mode.
        lexicon: its letters.
        data: how text is cut into words.
    """

    def __init__(self, model: BothWays, lexicon: Lexicon, data: ProseData) -> None:
        self.model, self.lexicon, self.data = model, lexicon, data

    def parse(self, raw: Raw, place: Place) -> Asked:
        """WORD TAB SENTENCE TAB SENTENCE; or a sentence, whose vectors are the answer."""
        text = str(raw)
        cells = text.split("\t")
        if len(cells) == 3:
            return self._pair(cells[0], cells[1:], place)
        words = self._words(text, place)
        if len(words) > WORDS:
            raise place.refuse(f"expected at most {WORDS} words, got {len(words)}")
        return Asked([words])

    def given(self, raw: Raw | DataError, place: Place) -> Given[Asked]:
        """A line of a file: a word in two sentences only."""
        if isinstance(raw, DataError):
            return super().given(raw, place)
        try:
            return Given(place, self._line(str(raw), place))
        except DataError as error:
            return Given(place, error)

    def answers(self, inputs: Sequence[Asked]) -> Iterator[Answer]:
        return (self._answer(asked) for asked in inputs)

    def predict(self, raw: str) -> str:
        """The cosines of each layer for WORD TAB SENTENCE TAB SENTENCE."""
        return self._answer(self._line(raw, Place("input"))).text()

    def compare(self, word: str, first: str, second: str) -> list[float]:
        """The cosines of a word's vectors in two sentences, the lowest layer first, where it is always 1.

        Raises:
            DataError: the word is missing in a sentence.
        """
        return self._cosines(self._pair(word, [first, second], Place("input")))

    def vectors(self, text: str) -> InSentence:
        """The vectors of every word of a sentence.

        Raises:
            DataError: there is no word in it.
        """
        return self._read(self._words(text, Place("input")))

    def ahead(self, words: list[str]) -> Tensor:
        """The forward model's log-probabilities [S + 1, V] of each word of a sentence, and of its end."""
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            logp: Tensor = self.model.head(self.model.ahead(spelled.to(device), mask.to(device)))[0]
        return logp.float().cpu()

    def word(self, number: int) -> str:
        """The name of a class of the softmax."""
        return {BOUNDARY: END, 1: "<unk>"}.get(number) or self.lexicon.words[number - 2]

    def _words(self, text: str, place: Place) -> list[str]:
        words = words_of(self.data, text)
        if not words:
            raise place.refuse("expected a sentence with words, got only white space")
        return words

    def _line(self, text: str, place: Place) -> Asked:
        columns = text.count("\t") + 1
        if columns != 3:
            raise place.refuse(f"expected 3 columns (word TAB sentence TAB sentence), got {columns}")
        return self.parse(text, place)

    def _pair(self, word: str, texts: Sequence[str], place: Place) -> Asked:
        spelt, found, at = words_of(self.data, word), [], []
        for text in texts:
            words = self._words(text, place)
            if len(spelt) != 1 or spelt[0] not in words:
                raise place.refuse(f"{word!r} is no word of {text!r}; give two sentences that contain it")
            found.append(words)
            at.append(words.index(spelt[0]))
        return Asked(found, word, at)

    def _read(self, words: list[str]) -> InSentence:
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            layers = torch.cat(self.model(spelled.to(device), mask.to(device)))
        return InSentence(words, layers.float().cpu().numpy())

    def _answer(self, asked: Asked) -> Answer:
        if asked.at:
            return Compared(asked.word, self._cosines(asked))
        return Embedded(self._read(asked.sentences[0]))

    def _cosines(self, asked: Asked) -> list[float]:
        a, b = (self._read(words).layers[:, at] for words, at in zip(asked.sentences, asked.at, strict=True))
        length = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        return [float(cosine) for cosine in (a * b).sum(1) / length]
