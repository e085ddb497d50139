"""Of other kits `make test` compares probabilities; searches, refusals and training on are slow tests."""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and "probabilit" not in item.name:
            item.add_marker(pytest.mark.slow)
