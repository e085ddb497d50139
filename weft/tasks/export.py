"""What a task says about its model so that other programs can run it.

A task whose model can be exported as graphs overrides `Pipeline.model_export` (task.py).
Read next: ../export/format.py.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.tasks.predictor import Answer, Json, Raw
from weft.text.vocabulary import EOS, Vocabulary

T = TypeVar("T")


class Graph(NamedTuple):
    """A function of tensors that becomes one graph."""

    name: str  # of its file, without an extension
    module: nn.Module  # takes the inputs in order, returns the outputs in order
    examples: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]  # two, all varying axes of different sizes
    outputs: Sequence[str]


SCORED = 500
"""Number of validation inputs that an export is scored on."""

SEED = 1
"""Of inputs drawn at random where the validation data is missing."""

Score = Callable[[Sequence[str]], tuple[str, float]]
"""From answers to the name and the value of a score."""


class ModelExport(NamedTuple):
    """A model as graphs, and how to use them.

    Where `distance` is given, 8-bit weights change answers a little, so they are measured and not counted.
    """

    graphs: Sequence[Graph]
    settings: Mapping[str, Json]  # what a program must know to use them, for weft.json; "kind" names the way
    files: Mapping[str, bytes]  # further files by name, such as tokenizer.json
    examples: Callable[[int], Sequence[Raw]]  # so many inputs as typed, on which it is compared with Weft
    program: str  # the file of export/programs that uses the graphs
    scored: "Callable[[], tuple[Sequence[Raw], Score | None]] | None" = None  # inputs, and how to score
    shown: Callable[[Answer], str] = lambda answer: answer.text()  # in the form of the program
    distance: Callable[[str, str], float] | None = None  # of answers in numbers, a share of the largest one
    close: float = 0.0  # the largest distance of equal answers
    options: Mapping[str, int | str] = {}  # where answers are compared, such as no sampling

    def same(self, ours: str, theirs: str) -> bool:
        """Whether two answers are equal, as far as numbers are."""
        return ours == theirs if self.distance is None else self.distance(ours, theirs) <= self.close


def ragged_mask(rows: int, steps: int) -> Tensor:
    """[rows, steps] bool: each row is one position shorter than the one before, and has one at least."""
    lengths = torch.arange(steps, steps - rows, -1).clamp(min=1)
    return torch.arange(steps) < lengths[:, None]


def random_texts(vocabulary: Vocabulary, count: int, least: int, most: int = 20) -> list[str]:
    """Texts of `least` to `most` random pieces."""
    draw, numbers = random.Random(SEED), range(EOS + 1, len(vocabulary))
    return [vocabulary.decode(draw.choices(numbers, k=draw.randint(least, most))) for _ in range(count)]


def random_sentences(words: Sequence[str], count: int) -> list[list[str]]:
    """Sentences of 1 to 12 random words."""
    draw = random.Random(SEED)
    return [draw.choices(words or ["a"], k=draw.randint(1, 12)) for _ in range(count)]


def random_letters(num_letters: int, rows: int, steps: int, length: int) -> dict[str, Tensor]:
    """Random words as letters, and sentences of them, each shorter than the one before."""
    draw = torch.Generator().manual_seed(rows)
    letters = torch.randint(1, num_letters, (rows * steps, length), generator=draw)
    which = torch.arange(rows * steps).view(rows, steps)
    return {"letters": letters, "which": which, "mask": ragged_mask(rows, steps)}


def some_of(read: Callable[[], Iterable[T]], count: int, otherwise: Callable[[], Sequence[T]]) -> Sequence[T]:
    """The first inputs of the run's own data, or others where the data is missing or has none."""
    with suppress(DataError):
        found = list(islice(read(), count))
        if found:
            return found
    return otherwise()
