"""A trained model that answers lines of text.

adding:  0.31 0.7* 0.05 0.9*     numbers from 0 to 1, two of them marked       -> 1.6000
copying: abcdefghba              letters a to h, as many as the model learnt  -> abcdefghba
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from weft.data.memory import BLANK, GO, SYMBOLS
from weft.models import Predictor
from weft.tasks import predictor
from weft.tasks.memory.data import MemoryData
from weft.tasks.predictor import Answer, Json, Place, Raw

LETTERS = "abcdefgh"


class Remembered(Answer):
    """A sum, or the recalled letters."""

    def __init__(self, written: str) -> None:
        self._written = written

    def text(self) -> str:
        return self._written

    def json(self) -> Json:
        return self._written


class Rememberer(predictor.Predictor[Tensor]):
    """Answers adding and copying problems.

    Args:
        model: trained, in evaluation mode.
        data: the problem, and the delay of the copying problem.
    """

    def __init__(self, model: Predictor, data: MemoryData) -> None:
        self.model, self.data = model, data

    def parse(self, raw: Raw, place: Place) -> Tensor:
        """A line as the model's input: [1, T, 2] or [1, T]."""
        if self.data.problem == "adding":
            return _numbers(str(raw).split(), place)
        return self._letters(str(raw).strip(), place)

    def answers(self, inputs: Sequence[Tensor]) -> Iterator[Answer]:
        device = next(self.model.parameters()).device
        for x in inputs:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=device)
            with torch.no_grad():
                yield Remembered(self.write(self.answer(x.to(device), mask))[0])

    def answer(self, x: Tensor, mask: Tensor) -> Tensor:
        """Sums [B], or the n recalled symbols [B, n]."""
        best = self.model.best(x, mask)
        return best[:, 0] if self.data.problem == "adding" else best[:, -self.data.symbols :]

    def write(self, answers: Tensor) -> list[str]:
        """Answers as text; `-` represents any symbol that is not a letter."""
        if self.data.problem == "adding":
            return [f"{value:.4f}" for value in answers.tolist()]
        return ["".join(LETTERS[n] if n < SYMBOLS else "-" for n in row) for row in answers.tolist()]

    def read(self, text: str) -> Tensor:
        """A line as the model's input; see parse."""
        return self.parse(text, Place("input"))

    def _letters(self, word: str, place: Place) -> Tensor:
        if len(word) != self.data.symbols or not set(word) <= set(LETTERS):
            raise place.refuse(
                f"expected {self.data.symbols} letters from a to h, such as "
                f"{(LETTERS * self.data.symbols)[: self.data.symbols]}, got {word[:60]!r}"
            )
        symbols = [LETTERS.index(letter) for letter in word]
        return torch.tensor([[*symbols, *[BLANK] * (self.data.length - 1), GO, *[BLANK] * len(symbols)]])


def _numbers(words: Sequence[str], place: Place) -> Tensor:
    marks = [word.endswith("*") for word in words]
    try:
        values = [float(word.removesuffix("*")) for word in words]
    except ValueError:
        values = [np.nan]
    if sum(marks) != 2 or not all(0 <= value <= 1 for value in values):
        raise place.refuse(
            "expected numbers from 0 to 1, two of them marked with a star, such as 0.3 0.7* 0.1 0.9*, "
            f"got {' '.join(words)[:60]!r}"
        )
    return torch.tensor([list(zip(values, map(float, marks), strict=True))])
