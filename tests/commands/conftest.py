"""Runs that the commands are tried on, each trained once."""

from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import weft


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The recipe of a corpus of its own."""
    return corpus.make(tmp_path / "toy")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with attention; nobody changes it."""
    return _trained(tmp_path_factory, "attention")


@pytest.fixture(scope="session")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without attention."""
    return _trained(tmp_path_factory, "blind", "model.decoder.enters=never", "training.max_updates=2")


def _trained(factory: pytest.TempPathFactory, name: str, *changes: str) -> Path:
    folder = factory.mktemp(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE", str(folder / "cache"))
        answer = weft("train", corpus.make(folder / "toy"), "--run", folder / "run", *changes)
    assert answer.code == 0, answer.err
    return folder / "run"
