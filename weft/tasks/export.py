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
    """A function of tensors that becomes one graph.

    Args:
        name: of its file, without an extension.
        module: takes the inputs in order, returns the outputs in order.
        examples: inputs by name, two sets that differ in the size of every axis that varies.
    """

    name: str
    module: nn.Module
    examples: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
    outputs: Sequence[str]


SCORED = 500
"""Number of validation inputs that an export is scored on."""

SEED = 1
"""Of inputs drawn at random where the validation data is missing."""

Score = Callable[[Sequence[str]], tuple[str, float]]
"""From answers to the name and the value of a score."""


class ModelExport(NamedTuple):
    """A model as graphs, and how to use them.

    Args:
        settings: what a program must know to use them, for weft.json; its key "kind" names the way.
        files: further files by name, such as tokenizer.json.
        examples: gives that many inputs, as a user would type them; the export is compared with Weft on them.
        program: the file of export/programs that uses the graphs.
        scored: gives validation inputs, and a function from answers to the name and value of a score;
            None where the task has no score of texts.
        shown: the text of an answer of Weft, in the form of the program.
        distance: of two answers that are numbers, as a share of the largest number; None for other answers.
            8-bit weights change such answers a little, so they are measured and not counted.
        close: the largest distance of equal answers.
        options: of the predictor and of the program when their answers are compared, such as no sampling.
    """

    graphs: Sequence[Graph]
    settings: Mapping[str, Json]
    files: Mapping[str, bytes]
    examples: Callable[[int], Sequence[Raw]]
    program: str
    scored: "Callable[[], tuple[Sequence[Raw], Score | None]] | None" = None
    shown: Callable[[Answer], str] = lambda answer: answer.text()
    distance: Callable[[str, str], float] | None = None
    close: float = 0.0
    options: Mapping[str, int | str] = {}

    def same(self, ours: str, theirs: str) -> bool:
        """Whether two answers are equal, as far as numbers are."""
        return ours == theirs if self.distance is None else self.distance(ours, theirs) <= self.close


def ragged_mask(rows: int, steps: int) -> Tensor:
    """[rows, steps] bool: each row is one position shorter than the one before, and has one at least."""
    lengths = torch.arange(steps, steps - rows, -1).clamp(min=1)
    return torch.arange(steps) < lengths[:, None]


def random_texts(vocabulary: Vocabulary, count: int, least: int) -> list[str]:
    """Texts of `least` to 20 random pieces."""
    draw, numbers = random.Random(SEED), range(EOS + 1, len(vocabulary))
    return [vocabulary.decode(draw.choices(numbers, k=draw.randint(least, 20))) for _ in range(count)]


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
