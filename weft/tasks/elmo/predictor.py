"""ELMo at work: the vectors of a word in its sentence, and one word in two contexts."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import DataError
from weft.nn.embed.contextual import BOUNDARY, BothWays
from weft.tasks.shared.context.text import words_of
from weft.tasks.shared.lexicon import Lexicon
from weft.tasks.shared.running_text import ProseData

END = "<end>"


class InSentence(NamedTuple):
    """A sentence and its vectors."""

    words: list[str]
    layers: np.ndarray  # [L + 1, S, 2 H], the lowest layer first


class Comparer:
    """Vectors in context.

    Args:
        model: trained, in evaluation mode.
        lexicon: its letters.
        data: how text is cut into words.
    """

    def __init__(self, model: BothWays, lexicon: Lexicon, data: ProseData) -> None:
        self.model, self.lexicon, self.data = model, lexicon, data

    def vectors(self, text: str) -> InSentence:
        """The vectors of every word of a sentence.

        Raises:
            DataError: there is no word in it.
        """
        words = words_of(self.data, text)
        if not words:
            raise DataError("expected a sentence with words, got only white space")
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            layers = torch.cat(self.model(spelled.to(device), mask.to(device)))
        return InSentence(words, layers.float().cpu().numpy())

    def ahead(self, words: list[str]) -> Tensor:
        """The forward model's log-probabilities [S + 1, V] of each word of a sentence, and of its end."""
        spelled, mask = self.lexicon.spell([words])
        device = self.model.ends.device
        with torch.no_grad():
            logp: Tensor = self.model.head(self.model.ahead(spelled.to(device), mask.to(device)))[0]
        return logp.float().cpu()

    def word(self, number: int) -> str:
        """What a class of the softmax is called."""
        return {BOUNDARY: END, 1: "<unk>"}.get(number) or self.lexicon.words[number - 2]

    def compare(self, word: str, first: str, second: str) -> list[float]:
        """The cosines of a word's vectors in two sentences, the lowest layer first, where it is always 1.

        Raises:
            DataError: a sentence has not the word.
        """
        chosen = []
        for text in (first, second):
            found = self.vectors(text)
            spelt = words_of(self.data, word)
            if len(spelt) != 1 or spelt[0] not in found.words:
                raise DataError(f"{word!r} is no word of {text!r}; give two sentences that have it")
            chosen.append(found.layers[:, found.words.index(spelt[0])])
        a, b = chosen
        length = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        return [float(cosine) for cosine in (a * b).sum(1) / length]

    def predict(self, line: str) -> str:
        """word TAB sentence TAB sentence to the cosines of each layer."""
        cells = line.split("\t")
        if len(cells) != 3:
            raise DataError(f"expected 3 columns (word TAB sentence TAB sentence), got {len(cells)}")
        return "\t".join([cells[0], *(f"{cosine:.4f}" for cosine in self.compare(*cells))])
