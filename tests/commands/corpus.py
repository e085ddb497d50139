"""A toy language pair that is learnt in seconds: each word has one translation, the order stays."""

import os
import random
import signal
from pathlib import Path

import pytest

from tests.commands.shell import Answer, weft
from weft.tasks.seq2seq.base import PairTraining

WORDS = {
    "alpha": "uno",
    "beta": "due",
    "gamma": "tre",
    "delta": "quattro",
    "epsilon": "cinque",
    "zeta": "sei",
    "eta": "sette",
    "theta": "otto",
    "iota": "nove",
}

RECIPE = """\
task: translate
data:
  source: xx
  target: yy
  train: {folder}/train
  valid: {folder}/valid
  test: {folder}/test
  vocabulary: {{kind: word, size: null, shared: false}}
  batch_tokens: 300
model:
  encoder: {{use: recurrent, cell: gru, sizes: [11, 13], bidirectional: true}}
  decoder: {{use: recurrent, cell: gru, sizes: [17], score: additive, input_feeding: true}}
  embedding: {{size: 19, dropout: 0.0}}
  smoothing: 0.0
training:
  optimiser: {{use: adam, lr: 0.015}}
  schedule: {{use: linear, warmup: 10}}
  max_updates: 400
  validate_every: 200
  precision: float32
  device: cpu
  tensorboard: false
decoding: {{beam: 3}}
"""


def translated(line: str) -> str:
    return " ".join(WORDS[word] for word in line.split())


def write(folder: Path, name: str, rows: int, seed: int) -> list[str]:
    """name.xx and name.yy; the sources are returned."""
    chance = random.Random(seed)
    lines = [" ".join(chance.choices(list(WORDS), k=chance.randint(1, 6))) for _ in range(rows)]
    (folder / f"{name}.xx").write_text("".join(f"{line}\n" for line in lines))
    (folder / f"{name}.yy").write_text("".join(f"{translated(line)}\n" for line in lines))
    return lines


def make(folder: Path) -> Path:
    """All three splits and recipe.yaml; the recipe is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, rows) in enumerate({"train": 397, "valid": 13, "test": 17}.items()):
        write(folder, name, rows, seed)
    (folder / "toy.yaml").write_text(RECIPE.format(folder=folder))
    return folder / "toy.yaml"


def stopped(recipe: Path, run: Path, at: int, *changes: str, number: int = signal.SIGTERM) -> Answer:
    """`weft train`, to which a signal comes while its at-th batch is made."""
    collate, seen = PairTraining.collate, []

    def signalled(self: PairTraining, numbers: object) -> object:
        seen.append(numbers)
        if len(seen) == at:
            os.kill(os.getpid(), number)
        return collate(self, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PairTraining, "collate", signalled)
        return weft("train", recipe, "--run", run, *changes)
