"""The examples in the docstrings of weft/: each prints what it says."""

import doctest
import importlib
import io
import random
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch

WEFT = Path(__file__).resolve().parents[1] / "weft"


def with_examples() -> dict[str, list[str]]:
    """The modules that hold an example, by their room; a file at the root is a room of its own."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(WEFT.rglob("*.py")):
        place = path.relative_to(WEFT.parent).with_suffix("").parts
        if ">>>" in path.read_text("utf-8"):
            rooms.setdefault(place[1], []).append(".".join(place).removesuffix(".__init__"))
    return rooms


ROOMS = with_examples()


def seed() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)


def run(test: doctest.DocTest) -> str:
    """What an example prints that it does not say, or nothing."""
    found = io.StringIO()
    seed()
    with redirect_stdout(io.StringIO()):
        doctest.DocTestRunner(verbose=False).run(test, out=found.write)
    return found.getvalue()


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_a_room_are_true(room: str) -> None:
    wrong = ""
    for name in ROOMS[room]:
        tests = doctest.DocTestFinder().find(importlib.import_module(name), name)
        assert any(one.examples for one in tests), f"{name} has an example that no docstring holds"
        wrong += "".join(run(one) for one in tests if one.examples)
    assert not wrong, wrong


def test_an_example_that_is_wrong_is_found() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong.py", 0)
    assert "Expected:\n    3\nGot:\n    2" in run(test)
