"""The examples in the docstrings of weft/: each prints what it says."""

import doctest
import importlib
import importlib.util
import io
import random
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch

WEFT = Path(__file__).resolve().parents[1] / "weft"
TRITON = importlib.util.find_spec("triton") is not None


def with_examples() -> dict[str, list[str]]:
    """The modules that hold an example, by their room; a file at the root is a room of its own."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(WEFT.rglob("*.py")):
        place = path.relative_to(WEFT.parent).with_suffix("").parts
        if "triton" in place and not TRITON:
            continue  # tests/nn/test_triton_kernel.py says how to get it
        if ">>>" in path.read_text("utf-8"):
            rooms.setdefault(place[1], []).append(".".join(place).removesuffix(".__init__"))
    return rooms


ROOMS = with_examples()


def seed() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_a_room_are_true(room: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner, said = doctest.DocTestRunner(verbose=False), io.StringIO()
    for name in ROOMS[room]:
        module = importlib.import_module(name)
        tests = [one for one in doctest.DocTestFinder().find(module, name) if one.examples]
        assert tests, f"{name} has an example that no docstring holds"
        for test in tests:
            seed()
            with redirect_stdout(io.StringIO()):
                runner.run(test, out=said.write)
    assert runner.summarize(verbose=False).failed == 0, said.getvalue()


def test_an_example_that_is_wrong_is_found() -> None:
    said = io.StringIO()
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong.py", 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.write)
    assert runner.summarize(verbose=False).failed == 1 and "Expected:\n    3" in said.getvalue()
