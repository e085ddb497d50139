"""Runs that the commands are tried on, each trained once for all tests."""

from pathlib import Path

import pytest

from tests.commands import corpus
from tests.shared import shared_run


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The recipe of a corpus of its own."""
    return corpus.make(tmp_path / "toy")


@pytest.fixture(scope="session")
def trained() -> Path:
    """A run with attention; nobody changes it."""
    return shared_run("translate")


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest) -> Path:
    """The shared run of the task that the module names; nobody changes it."""
    return shared_run(request.module.TASK)


@pytest.fixture(scope="session")
def blind() -> Path:
    """A run without attention."""
    return shared_run("translate without attention")
