"""A trained model at work on lines of text.

adding:  0.31 0.7* 0.05 0.9*     numbers from 0 to 1, two of them marked       -> 1.6000
copying: abcdefghba              letters a to h, as many as the model learnt  -> abcdefghba
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from weft.data.memory import BLANK, GO, SYMBOLS
from weft.errors import DataError
from weft.models import Predictor
from weft.tasks.memory.data import MemoryData

LETTERS = "abcdefgh"


class Rememberer:
    """Answers sequences.

    Args:
        model: trained, in evaluation mode.
        data: says which problem, and the delay of the copying problem.
    """

    def __init__(self, model: Predictor, data: MemoryData) -> None:
        self.model, self.data = model, data

    def predict(self, text: str) -> str:
        """The answer to a line: the sum of the marked numbers, or the letters after the delay.

        Raises:
            DataError: the line is none of this problem's.
        """
        x = self.read(text)
        device = next(self.model.parameters()).device
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=device)
        with torch.no_grad():
            return self.write(self.answer(x.to(device), mask))[0]

    def answer(self, x: Tensor, mask: Tensor) -> Tensor:
        """Sums [B], or the n recalled symbols [B, n]."""
        best = self.model.best(x, mask)
        return best[:, 0] if self.data.problem == "adding" else best[:, -self.data.symbols :]

    def write(self, answers: Tensor) -> list[str]:
        """Answers as text; a blank or a sign where a letter was due is `-`."""
        if self.data.problem == "adding":
            return [f"{value:.4f}" for value in answers.tolist()]
        return ["".join(LETTERS[n] if n < SYMBOLS else "-" for n in row) for row in answers.tolist()]

    def read(self, text: str) -> Tensor:
        """A line as the model's input: [1, T, 2] or [1, T]."""
        return self._numbers(text.split()) if self.data.problem == "adding" else self._letters(text.strip())

    def _numbers(self, words: Sequence[str]) -> Tensor:
        marks = [word.endswith("*") for word in words]
        try:
            values = [float(word.removesuffix("*")) for word in words]
        except ValueError:
            values = [np.nan]
        if sum(marks) != 2 or not all(0 <= value <= 1 for value in values):
            raise DataError(
                "expected numbers from 0 to 1, two of them marked with a star, such as 0.3 0.7* 0.1 0.9*, "
                f"got {' '.join(words)[:60]!r}"
            )
        return torch.tensor([list(zip(values, map(float, marks), strict=True))])

    def _letters(self, word: str) -> Tensor:
        if len(word) != self.data.symbols or not set(word) <= set(LETTERS):
            raise DataError(
                f"expected {self.data.symbols} letters from a to h, such as "
                f"{(LETTERS * self.data.symbols)[: self.data.symbols]}, got {word[:60]!r}"
            )
        said = [LETTERS.index(letter) for letter in word]
        return torch.tensor([[*said, *[BLANK] * (self.data.length - 1), GO, *[BLANK] * len(said)]])
