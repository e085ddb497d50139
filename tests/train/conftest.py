"""Saving leaves no thread behind."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    yield
    assert threading.active_count() == 1
