"""A recipe for tests, with and without changes. Read next: test_text.py."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft.config import Table, read_recipe

RECIPE = """\
task: translate
data: {source: no, target: "en", train: path/train}
model:
  encoder:
    use: recurrent
    sizes: [7, 5]
    cell: {use: gru, reset: before}
training:
  lr: 1e-3
  epochs: 3
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Table]:
    """Reads a text (by default the one above) with overrides, as file x.yaml."""
    monkeypatch.chdir(tmp_path)

    def read(text: str = "", *overrides: str) -> Table:
        Path("x.yaml").write_text(text or RECIPE, encoding="utf-8")
        return read_recipe("x.yaml", overrides)

    return read
