"""The runs of all tasks, opened once."""

from collections.abc import Callable
from functools import cache

import pytest

from tests.shared import shared_run
from weft.run import LoadedRun, open_run


@pytest.fixture(scope="session")
def runs() -> Callable[[str], LoadedRun]:
    """The run of a task."""
    return cache(lambda name: open_run(shared_run(name), device="cpu"))
