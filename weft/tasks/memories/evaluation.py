"""How well a model remembers, beside what it would reach without remembering."""

import json
from typing import NamedTuple

import numpy as np
import torch

from weft.metrics.floor import beside
from weft.tasks.memories.data import MemoryData
from weft.tasks.memories.rememberer import Rememberer

NEAR = 0.04
"""A sum is right when it is off by less (Hochreiter & Schmidhuber 1997, experiment 4)."""

RESAMPLES = 1000


class Measured(NamedTuple):
    """Answers of a model and what each cost."""

    outputs: list[str]
    references: list[str]
    errors: np.ndarray  # [N] squared error of a sum, or nats a position of a copy
    right: np.ndarray  # [N] 1.0 for a sum within NEAR; the share of the symbols of a copy


class MemoryEvaluation(NamedTuple):
    """Scores with 95 % intervals and the floor."""

    title: str
    outputs: list[str]
    name: str  # of the score that the floor belongs to
    value: float
    low: float
    high: float
    floor: float
    accuracy: float
    signature: str

    def text(self) -> str:
        """For a reader."""
        below = beside(self.value, self.floor, higher=self.name != "MSE")
        lines = [
            self.title,
            f"  {self.name} {self.value:.5f} [{self.low:.5f}, {self.high:.5f}] ({self.signature})",
        ]
        if self.name == "MSE":
            lines.append(f"  within {NEAR} of the sum: {self.accuracy:.4f}")
        lines.append(f"  floor: without remembering {self.floor:.4f}{below}")
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        return json.dumps(self._asdict() | {"outputs": len(self.outputs)}, indent=1) + "\n"


def measure(rememberer: Rememberer, split: str, count: int) -> Measured:
    """Answer the first `count` examples of a split."""
    data, model = rememberer.data, rememberer.model
    device = next(model.parameters()).device
    outputs, references, errors, right = [], [], [], []
    for at in range(0, count, data.batch_rows):
        batch = data.batch(split, np.arange(at, min(at + data.batch_rows, count))).to(device)
        with torch.no_grad():
            answers = rememberer.answer(batch.source, batch.source_mask)
            if data.problem == "adding":
                truth = batch.target
                error = (answers - truth).square()
                hit = ((answers - truth).abs() < NEAR).double()
            else:
                truth = batch.target[:, -data.symbols :]
                logp = model(batch.source, batch.source_mask)
                error = -logp.gather(2, batch.target[..., None]).squeeze(2).mean(1)
                hit = (answers == truth).double().mean(1)
        outputs += rememberer.write(answers)
        references += rememberer.write(truth)
        errors.append(error.double().cpu().numpy())
        right.append(hit.cpu().numpy())
    return Measured(outputs, references, np.concatenate(errors), np.concatenate(right))


def evaluate(rememberer: Rememberer, split: str, count: int) -> MemoryEvaluation:
    """MSE of sums, or accuracy of recalled symbols, on examples that no training saw.

    The interval is the bootstrap's, 1,000 resamples of examples.
    """
    data: MemoryData = rememberer.data
    found = measure(rememberer, split, count)
    adding = data.problem == "adding"
    values = found.errors if adding else found.right
    chance = np.random.default_rng(1)
    means = [values[chance.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    what = f"length:{data.length}" if adding else f"delay:{data.length}|symbols:{data.symbols}"
    return MemoryEvaluation(
        title=data.describe(split),
        outputs=found.outputs,
        name="MSE" if adding else "accuracy",
        value=float(values.mean()),
        low=float(low),
        high=float(high),
        floor=data.floor,
        accuracy=float(found.right.mean()),
        signature=f"problem:{data.problem}|{what}|seed:{data.seed}|split:{split}|n:{count}|resamples:{RESAMPLES}",
    )
