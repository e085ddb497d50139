"""A tiny language task with dropout, tied weights and ragged rows, for the tests of training.

It obeys the contract of weft/tasks/task.py and records what the loop asks of it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.nn.heads.head import Loss
from weft.tasks.evaluation import Validation
from weft.train.optimisers import AdamW
from weft.train.reporting import MetricsFile, Reporter
from weft.train.settings import TrainingSettings

WORDS = 11
ROWS = 27


class Batch(NamedTuple):
    numbers: np.ndarray
    tokens: Tensor  # [B, T]
    mask: Tensor  # [B, T]

    def to(self, device: torch.device) -> "Batch":
        return self._replace(tokens=self.tokens.to(device), mask=self.mask.to(device))

    @property
    def target_tokens(self) -> int:
        return int(self.mask[:, 1:].sum())


class Sample(NamedTuple):
    source: str
    output: str


class Model(nn.Module):
    """A GRU language model whose output layer is its embedding."""

    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 5)
        self.cell = nn.GRU(5, 5, batch_first=True)
        self.norm = nn.LayerNorm(5)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(5, WORDS)
        self.output.weight = self.embed.weight
        self.asked: list[dict[str, Any]] = []

    def loss(self, batch: Batch, **feeding: Any) -> Loss:
        self.asked.append(feeding)
        x = self.embed(batch.tokens[:, :-1])
        if feeding:
            true = torch.rand(x.shape[:2], device=x.device) < feeding["feeding"]
            x = x * true[..., None]
        h = self.dropout(self.norm(self.cell(x)[0]))
        logp = self.output(h).log_softmax(-1)
        mask = batch.mask[:, 1:]
        picked = logp.gather(2, batch.tokens[:, 1:, None]).squeeze(2)
        return Loss(-(picked * mask).sum(), mask.sum())


class Plan:
    """Batches of `size` rows in an order made of (seed, epoch)."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed, self.size = seed, size

    def epoch(self, number: int) -> list[np.ndarray]:
        order = np.random.default_rng((self.seed, number)).permutation(ROWS)
        return [order[at : at + self.size] for at in range(0, ROWS, self.size)]


class Task:
    """Learn a few rows by heart; 7 batches an epoch unless another size is given."""

    better: ClassVar = {"loss": "lower", "score": "higher"}
    streams = False
    solved = False
    target_unit = "token"
    keeps = ()
    recipe: ClassVar = {}

    def __init__(
        self,
        *,
        size: int = 4,
        dropout: float = 0.3,
        dtype: torch.dtype = torch.float32,
        on_batch: Callable[[int], None] = lambda number: None,
        on_validation: Callable[[int], None] = lambda number: None,
        scores: list[float] | None = None,
    ) -> None:
        self.size, self.dropout, self.dtype = size, dropout, dtype
        self.on_batch, self.on_validation = on_batch, on_validation
        self.given = scores
        self.ids: list[list[int]] = []
        self.validations = 0
        self.built: Model | None = None
        chance = np.random.default_rng(7)
        self.rows = [chance.integers(4, WORDS, chance.integers(2, 8)) for _ in range(ROWS)]

    def prepare(self, run: Path, progress: Any) -> Any:
        progress("reading", 1, 1)
        return self

    @property
    def task(self) -> Any:
        return self

    @property
    def training(self) -> Any:
        return self

    def model(self) -> nn.Module:
        self.built = Model(self.dropout).to(self.dtype)
        return self.built

    def check_metric(self, metric: str) -> None:
        pass

    def plan(self, seed: int) -> Plan:
        return Plan(seed, self.size)

    def collate(self, numbers: np.ndarray) -> Batch:
        self.on_batch(len(self.ids))
        self.ids.append(numbers.tolist())
        return self.batch(numbers)

    def batch(self, numbers: np.ndarray) -> Batch:
        longest = max(len(self.rows[n]) for n in numbers)
        tokens = np.zeros((len(numbers), longest), dtype=np.int64)
        for at, number in enumerate(numbers):
            tokens[at, : len(self.rows[number])] = self.rows[number]
        tokens_ = torch.from_numpy(tokens)
        return Batch(numbers, tokens_, tokens_ > 0)

    def validate(self, model: Any) -> Validation:
        self.on_validation(self.validations)
        self.validations += 1
        assert not model.training
        torch.rand(3)  # a validation that draws must not change the training
        loss = model.loss(self.batch(np.arange(ROWS))).mean.item()
        score = self.given[self.validations - 1] if self.given else -loss
        return Validation({"loss": loss, "score": score}, [Sample("a b", "c")])


class Notes(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.warnings: list[str] = []

    def said(self, text: str) -> None:
        self.texts.append(text)

    def warned(self, text: str) -> None:
        self.warnings.append(text)


def settings(**changes: Any) -> TrainingSettings:
    usual: dict[str, Any] = {
        "optimiser": AdamW(lr=0.01),
        "accumulate": 3,  # 7 batches an epoch: groups of 3, 3 and 1
        "max_epochs": 3,
        "log_every": 1,
        "precision": "float32",
        "device": "cpu",
        "tensorboard": False,
        "monitors": False,
    }
    return TrainingSettings(**{**usual, **changes})


def quiet(run: Path, notes: Notes | None = None) -> Reporter:
    return Reporter(notes or Notes(), MetricsFile(run / "metrics.jsonl"))
