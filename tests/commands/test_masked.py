"""A masked language model from text to filled gaps, as a user types it."""

import random
from pathlib import Path

import pytest

import weft as package
from tests.commands.shell import refused, unanswered, weft

RECIPE = """\
task: masked
data:
  train: {folder}/train.txt
  valid: {folder}/valid.txt
  vocabulary: {{kind: word}}
  batches: lines
  length: 11
  rows: 13
model:
  size: 16
  dropout: 0.0
  encoder: {{use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.0}}
  share: 0.3
training:
  optimiser: {{use: adam, lr: 0.01}}
  max_updates: 120
  validate_every: 60
  precision: float32
  device: cpu
  tensorboard: false
"""


def make(folder: Path) -> Path:
    """Cats purr and dogs bark, on both sides of a gap."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(3)
    for name, rows in (("train", 300), ("valid", 30)):
        lines = [chance.choice(["the cat can purr", "a dog can bark"]) for _ in range(rows)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "toy.yaml").write_text(RECIPE.format(folder=folder))
    return folder / "toy.yaml"


def test_gaps_are_filled_from_both_sides(tmp_path: Path) -> None:
    answer = weft("train", make(tmp_path / "toy"), "--run", tmp_path / "run")
    assert answer.code == 0, answer.err
    run = tmp_path / "run"
    said = weft("predict", run, stdin=b"the [MASK] can purr\na [MASK] can bark\n")
    assert said.out == "the cat can purr\na dog can bark\n"
    ranked = weft("predict", run, "--nbest", "2", "--scores", stdin=b"the [MASK] can [MASK]\n").out
    first, second = ranked.strip().split("\t")
    assert first.startswith("cat:0.") and second.startswith("purr:0.") and len(first.split()) == 2
    assert package.load(run).predict("the cat can [MASK]") == "the cat can purr"
    scored = weft("evaluate", run, "--split", "valid")
    assert scored.code == 0 and "80/10/10" in scored.out and "worse" not in scored.out
    (said,) = unanswered(weft("predict", run, stdin=b"a dog\n"))
    assert "standard input:1: expected [MASK]" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [("data.batches=windows", "set batches: lines"), ("model.share=1.0", "share: expected a share")],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, change: str, sentence: str) -> None:
    assert sentence in refused(weft("train", make(tmp_path / "toy"), "--run", tmp_path / "run", change))
