"""A small text whose words stand in a fixed order, and a recipe of the task `language` for it."""

import random
from pathlib import Path

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "dog", "ran", "home", "."]

RECIPE = """\
task: language
data:
  folder: {folder}
  train: train.txt
  valid: valid.txt
  vocabulary: {{kind: {kind}}}
  batches: {batches}
  length: 7
  batch_rows: 5
model:
  decoder: {decoder}
  embedding: {{size: 12, dropout: 0.0}}
training:
  optimiser: {{use: adam, lr: 0.02}}
  max_updates: {updates}
  precision: float32
  device: cpu
  tensorboard: false
decoding: {{max_tokens: 9}}
"""
RECURRENT = "{use: recurrent, cell: gru, sizes: [17], dropout: 0.0}"
GPT = "{use: transformer, size: 12, num_layers: 1, num_heads: 2, positions: learned, max_length: 7}"


def write(folder: Path) -> Path:
    """Sentences whose words stand in a fixed order, so that they can be learnt; some lines are empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, rows) in enumerate({"train": 211, "valid": 23}.items()):
        chance = random.Random(seed)
        begins = [chance.randrange(len(WORDS)) for _ in range(rows)]
        lines = [" ".join((WORDS * 2)[b : b + 2 + b % 5]) if b else "" for b in begins]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


def make(folder: Path, kind: str = "space", batches: str = "stream", updates: int = 60) -> Path:
    decoder = GPT if batches == "windows" else RECURRENT
    text = RECIPE.format(folder=write(folder), kind=kind, batches=batches, decoder=decoder, updates=updates)
    (folder / "my.yaml").write_text(text)
    return folder / "my.yaml"
