"""A trained model that answers lines of text; and its scores, next to the score without memory.

adding:    0.31 0.7* 0.05 0.9*   numbers from 0 to 1, two of them marked            -> 1.6000
copying:   abcdefghba            letters a to h, as many as the model learnt        -> abcdefghba
           abcdefghba....        the same with a delay of 5, instead of the test's  -> abcdefghba
selective: ..a.b..c.             the same among dots                                -> abc
induction: ab!cdb                which letter followed the sign                     -> c
recall:    3a 17c ? 17 3         keys with their letters, then the keys             -> ca
cups:      - ab bc               swaps of cups; the ball's place after each of them -> abc
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.figures.records import Figure
from weft.metrics.accuracy import Accuracy
from weft.metrics.metric import ItemKind
from weft.metrics.numbers import Mse
from weft.metrics.scored import ComparedOutputs, of_rows, ratio
from weft.models import Labeller
from weft.tasks import predictor
from weft.tasks.evaluation import Evaluation
from weft.tasks.inspection import Inspection, checked, choices_of
from weft.tasks.labels.base import LabelBatch
from weft.tasks.memory.data import LETTERS, NAMES, PROBLEMS, SYMBOLS, MemoryData
from weft.tasks.predictor import Answer, Json, Place, Raw, as_text


@dataclass(eq=False)
class MemoryAnswer(Answer):
    """A sum, or the recalled letters."""

    written: str
    logp: Sequence[float] = ()  # of each letter, if it was computed
    scores: bool = False

    def text(self) -> str:
        return f"{sum(self.logp):.4f}\t{self.written}" if self.scores else self.written

    def figure(self) -> "Figure | None":
        from weft.figures.coloured import coloured_text  # imports matplotlib

        note = "probability of each letter; white 0, dark 1"
        return coloured_text(
            list(self.written), np.exp(self.logp), title=self.written[:80], note=note, top=1.0
        )

    def json(self) -> Json:
        return self.written


class Rememberer(predictor.Predictor[Tensor]):
    """Answers memory problems.

    Args:
        model: trained, in evaluation mode.
        data: the problem and its sizes.
        scores: whether answers begin with their log-probability.
        plot: whether answers have figures.

    Example:
        >>> from weft.tasks.memory.data import MemoryData
        >>> from weft.tasks.memory.task import MemoryModel
        >>> data = MemoryData(problem="copying", length=5, symbols=3)
        >>> model = MemoryModel().build(data).eval()
        >>> model.head.bias.data[1] = 9.0  # an untrained model that says b
        >>> Rememberer(model, data).predict("abc")
        'bbb'
    """

    draws = True

    def __init__(
        self, model: Labeller, data: MemoryData, *, scores: bool = False, plot: bool = False
    ) -> None:
        if (scores or plot) and data.problem == "adding":
            raise ConfigError(
                f"--{'scores' if scores else 'pictures'}: a sum has no probability; leave it out"
            )
        self.model, self.data = model, data
        self._scores, self._plot = scores, plot

    def parse(self, raw: Raw, place: Place) -> Tensor:
        """A line as the model's input: [1, T, 2] or [1, T]."""
        line = as_text(raw, place).strip()
        try:
            signs = PROBLEMS[self.data.problem].read(line, (self.data.length_of("test"), self.data.symbols))
        except ValueError as expected:
            raise place.refuse(f"{expected}, got {line[:60]!r}") from None
        return torch.tensor([signs])

    def answers(self, inputs: Sequence[Tensor]) -> Iterator[Answer]:
        device = next(self.model.parameters()).device
        for x in inputs:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=device)
            with torch.no_grad():
                found = self._answer(x.to(device), mask)
                shown = self._scores or self._plot
                logp = self._logp(x.to(device), mask, found) if shown else []
            yield MemoryAnswer(self._write(found)[0], logp, scores=self._scores)

    def _answer(self, x: Tensor, mask: Tensor) -> Tensor:
        """Sums [B], or the n symbols that are asked [B, n]."""
        best = self.model.best(x, mask)
        return best[:, 0] if self.data.problem == "adding" else best[:, -self._asked(x) :]

    def _logp(self, x: Tensor, mask: Tensor, answer: Tensor) -> list[float]:
        logp: Tensor = self.model(x, mask)[:, -answer.shape[1] :]
        found: list[float] = logp.gather(2, answer[..., None]).flatten().tolist()
        return found

    def _asked(self, x: Tensor) -> int:
        """How many of the last outputs are asked of inputs [B, T] that are signs."""
        return PROBLEMS[self.data.problem].asked(x.shape[1], self.data.symbols)

    def _write(self, answers: Tensor) -> list[str]:
        """Answers as text; `-` represents any symbol that is not a letter."""
        if self.data.problem == "adding":
            return [f"{value:.4f}" for value in answers.tolist()]
        return ["".join(LETTERS[n] if n < SYMBOLS else "-" for n in row) for row in answers.tolist()]


def inspect_problem(rememberer: Rememberer, text: str | None) -> Inspection:
    """A sequence to remember, and what the model answers."""
    data, model = rememberer.data, rememberer.model
    device = next(model.parameters()).device
    adding = data.problem == "adding"
    if text is None:
        batch = data.batch("test", np.arange(1))
        x = batch.source
    else:
        x = rememberer.parse(checked(text), Place("input"))
    x = x.to(device)
    mask = torch.ones(x.shape[:2], dtype=torch.bool, device=device)
    with torch.no_grad():
        best = model.best(x, mask)
        answer = rememberer._write(rememberer._answer(x, mask))[0]
    if adding:
        source = [f"{value:.2f}{'*' if mark else ''}" for value, mark in x[0].tolist()]
        target = best[:, 0]
        choices = []
    else:
        signs = PROBLEMS[data.problem].names(data.symbols)
        source = [signs[int(n)] for n in x[0].tolist()]
        with torch.no_grad():
            logp = model(x, mask)[0]
        target, last = best, rememberer._asked(x)
        asked = source[:last] if data.problem == "copying" else source[-last:]
        choices = choices_of(logp[-last:], best[0, -last:].tolist(), NAMES.__getitem__, asked)
    shown = ("" if max(map(len, source)) == 1 else " ").join(source)
    return Inspection(
        text=shown if text is None else text,
        answer=answer,
        source=source,
        batch=LabelBatch(x, mask, target, int(target.numel())),
        choices=choices,
        chosen_what="the symbols that are asked",
    )


NEAR = 0.04
"""A sum is right if its absolute error is smaller (Hochreiter & Schmidhuber 1997, experiment 4)."""

WITHOUT, GUESS = "without remembering", "a guess"
"""Names of baselines: the answer 1 for every sum; the first letter everywhere."""


class MemoryScores(NamedTuple):
    """Answers of a model, and their errors."""

    outputs: list[str]
    references: list[str]
    answers: np.ndarray  # [N] sums, or [N, M] symbols
    truth: np.ndarray  # in the same form
    errors: np.ndarray  # [N] squared error of a sum, or nats per position
    places: np.ndarray  # [N, M] steps since the first number of a sum, or the number of the symbol, from 1

    @property
    def guess(self) -> np.ndarray:
        """What is answered without memory: 1 for every sum, the mean; else the first letter everywhere."""
        return np.ones_like(self.truth) if self.truth.ndim == 1 else np.zeros_like(self.truth)

    def right(self, answers: np.ndarray) -> np.ndarray:
        """1.0 for sums within NEAR and for right symbols, else 0.0."""
        return (np.abs(answers - self.truth) < NEAR).astype(np.float64)

    def compared(self, about: str = "") -> ComparedOutputs:
        """The sums as numbers, or the letters as labels, beside those without memory."""
        if self.truth.ndim == 1:
            lowest = {WITHOUT: self.guess}
            return ComparedOutputs(self.answers, self.truth, None, lowest, "numbers", None, about)
        guesses = [[LETTERS[0]] * len(line) for line in self.references]
        return ComparedOutputs(
            [list(line) for line in self.outputs],
            [list(line) for line in self.references],
            baselines={GUESS: guesses},
            reads="labels",
            about=about,
        )


@dataclass(frozen=True)
class MemoryEvaluation(Evaluation):
    """Scores, and the values that they summarise."""

    places: np.ndarray  # [N, M] see MemoryScores
    values: np.ndarray  # [N, M] squared errors of sums, or 1.0 for right symbols
    shows: ClassVar[str] = "score by how long something is remembered"
    offers: ClassVar[tuple[ItemKind, ...]] = ("numbers", "labels")

    def figure(self, name: str) -> "Figure":
        from weft.figures.charts import by_place

        adding = self.scores[0].score.name == "MSE"
        x = "steps since the first of the two numbers" if adding else "place of the symbol, from 1"
        y = "squared error" if adding else "share right"
        flat = np.ravel(self.places), np.ravel(self.values)
        title = f"{name}: {self.title}"
        return by_place({name: flat}, x=x, y=y, title=title, baselines=self.scores[0].baselines)


def measure(rememberer: Rememberer, split: str, count: int) -> MemoryScores:
    """Answer the first `count` examples of a split."""
    data, model = rememberer.data, rememberer.model
    device = next(model.parameters()).device
    outputs, references = [], []
    parts: list[list[np.ndarray]] = []
    for at in range(0, count, data.batch_rows):
        batch = data.batch(split, np.arange(at, min(at + data.batch_rows, count))).to(device)
        with torch.no_grad():
            answers = rememberer._answer(batch.source, batch.source_mask)
            if data.problem == "adding":
                truth = batch.target
                error = (answers - truth).square()
                places = batch.source.shape[1] - batch.source[..., 1].argmax(1, keepdim=True)
            else:
                truth = batch.target[:, -rememberer._asked(batch.source) :]
                logp = model(batch.source, batch.source_mask)
                error = -logp.gather(2, batch.target[..., None]).squeeze(2).mean(1)
                places = torch.arange(1, truth.shape[1] + 1, device=device).expand_as(truth)
        outputs += rememberer._write(answers)
        references += rememberer._write(truth)
        parts.append([one.double().cpu().numpy() for one in (answers, truth, error, places)])
    return MemoryScores(outputs, references, *map(np.concatenate, zip(*parts, strict=True)))


def evaluate(rememberer: Rememberer, split: str, count: int) -> MemoryEvaluation:
    """MSE and share of right sums, or accuracy of recalled symbols, on unseen examples."""
    data: MemoryData = rememberer.data
    found = measure(rememberer, split, count)
    length = data.length_of(split)
    what = f"delay:{length}" if data.problem == "copying" else f"length:{length}"
    what += "" if data.problem == "adding" else f"|symbols:{data.symbols}"
    signature = f"problem:{data.problem}|{what}|seed:{data.seed}|split:{split}"
    compared, values = found.compared(signature), found.right(found.answers)
    if data.problem == "adding":
        within = ratio(f"within {NEAR} of the sum", signature, higher_is_better=True)
        own, lowest = (np.stack([right, np.ones(count)], 1) for right in (values, found.right(found.guess)))
        items = compared.fingerprint()
        scores = [compared.scored(Mse()), of_rows(within, own, beside={WITHOUT: lowest}, items=items)]
        values = found.errors
    else:
        scores = [compared.scored(Accuracy()).counted("symbol")]
    title = data.describe(split)
    return MemoryEvaluation(title, found.outputs, scores, found.places, values, compared=[compared])
