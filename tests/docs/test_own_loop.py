"""The page on a loop of your own: its models learn, also in Lightning and Accelerate if installed."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "own-loop.md").read_text("utf-8")
CELLS = re.findall(r"```\{code-cell\} python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_models_of_the_page_learn_in_a_few_steps() -> None:
    names: dict[str, Any] = {}
    for cell in CELLS[::2]:  # the data and the models
        exec(cell, names)
    exec(CELLS[1].replace("range(400)", "range(2)"), names)
    exec(CELLS[3].replace("range(120)", "range(2)").replace("range(150)", "range(2)"), names)
    assert names["found"].tokens.shape[:2] == (200, 1)


@pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated")  # in lightning 2.6
@pytest.mark.parametrize(("library", "code"), list(zip(("lightning", "accelerate"), SHOWN, strict=True)))
def test_the_same_in_other_loops(library: str, code: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: pip install --group loop-tests")
    names: dict[str, Any] = {}
    exec(CELLS[0].partition("class Tagger")[0], names)
    exec(CELLS[2], names)
    exec(code, names)
