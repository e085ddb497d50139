"""How well a model remembers, next to the score without memory."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch

from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines, fingerprint
from weft.tasks.evaluation import Evaluation
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.predictor import Rememberer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = 0.04
"""A sum is right if its absolute error is smaller (Hochreiter & Schmidhuber 1997, experiment 4)."""


class MemoryScores(NamedTuple):
    """Answers of a model, and their errors.

    Fields:
        errors: [N] squared error of a sum, or nats per position.
        right: [N] 1.0 for a sum within NEAR, or the share of right symbols.
        certain: [N] 1.0 where the answer 1 is within NEAR of the sum.
        places: [N, M] steps since the first number of a sum, or the number of the symbol, from 1.
        values: [N, M] squared error of the sum, or 1.0 where that symbol is right.
    """

    outputs: list[str]
    references: list[str]
    errors: np.ndarray
    right: np.ndarray
    certain: np.ndarray
    places: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class MemoryEvaluation(Evaluation):
    """Scores, and the values that they summarise."""

    title: str
    outputs: list[str]
    scores: list[ScoreWithBaselines]  # MSE and sums within NEAR; for symbols, accuracy
    places: np.ndarray  # [N, M] see Measured
    values: np.ndarray  # [N, M]
    shows: ClassVar[str] = "score by how long something is remembered"

    def figure(self, name: str) -> "Figure":
        """The score of sums by the distance of their first number, or of symbols by their place."""
        from weft.figures.by_place import by_place  # imports matplotlib

        adding = self.values.shape[1] == 1 and self.scores[0].score.name == "MSE"
        x = "steps since the first of the two numbers" if adding else "place of the symbol, from 1"
        y = "squared error" if adding else "share right"
        flat = np.ravel(self.places), np.ravel(self.values)
        title = f"{name}: {self.title}"
        return by_place({name: flat}, x=x, y=y, title=title, baselines=self.scores[0].baselines)


def measure(rememberer: Rememberer, split: str, count: int) -> MemoryScores:
    """Answer the first `count` examples of a split."""
    data, model = rememberer.data, rememberer.model
    device = next(model.parameters()).device
    baseline = data.baseline(split)
    outputs, references = [], []
    parts: list[list[np.ndarray]] = [[] for _ in range(5)]
    for at in range(0, count, data.batch_rows):
        batch = data.batch(split, np.arange(at, min(at + data.batch_rows, count))).to(device)
        with torch.no_grad():
            answers = rememberer.answer(batch.source, batch.source_mask)
            if data.problem == "adding":
                truth = batch.target
                values = error = (answers - truth).square()
                right = ((answers - truth).abs() < NEAR).double()
                certain = ((1 - truth).abs() < NEAR).double()
                places = batch.source.shape[1] - batch.source[..., 1].argmax(1)
            else:
                truth = batch.target[:, -rememberer.asked(batch.source) :]
                logp = model(batch.source, batch.source_mask)
                error = -logp.gather(2, batch.target[..., None]).squeeze(2).mean(1)
                values = (answers == truth).double()
                right, certain = values.mean(1), torch.full_like(error, baseline)
                places = torch.arange(1, truth.shape[1] + 1, device=device).expand_as(truth)
        outputs += rememberer.write(answers)
        references += rememberer.write(truth)
        for part, one in zip(parts, (error, right, certain, places, values), strict=True):
            part.append(one.double().cpu().numpy().reshape(len(truth), -1))
    errors, rights, certains, where, each = (np.concatenate(part) for part in parts)
    return MemoryScores(outputs, references, errors[:, 0], rights[:, 0], certains[:, 0], where, each)


def evaluate(rememberer: Rememberer, split: str, count: int) -> MemoryEvaluation:
    """MSE and share of right sums, or accuracy of recalled symbols, on unseen examples."""
    data: MemoryData = rememberer.data
    found = measure(rememberer, split, count)
    length = data.length_of(split)
    what = f"delay:{length}" if data.problem == "copying" else f"length:{length}"
    what += "" if data.problem == "adding" else f"|symbols:{data.symbols}"
    signature = f"problem:{data.problem}|{what}|seed:{data.seed}|split:{split}"
    items = fingerprint(found.references)
    if data.problem == "adding":
        error = ratio("MSE", signature, higher_is_better=False)
        within = ratio(f"within {NEAR} of the sum", signature, higher_is_better=True)
        share = float(found.certain.mean())
        scores = [
            mean_of(
                error, found.errors, baselines={"without remembering": data.baseline(split)}, items=items
            ),
            mean_of(within, found.right, baselines={"the answer 1": share}, items=items),
        ]
    else:
        accuracy = ratio("accuracy", signature, higher_is_better=True)
        scores = [mean_of(accuracy, found.right, baselines={"a guess": data.baseline(split)}, items=items)]
    return MemoryEvaluation(data.describe(split), found.outputs, scores, found.places, found.values)
