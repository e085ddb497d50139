"""Saving leaves no thread behind."""

import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())  # other tests of this process may have left some
    yield
    # TensorBoard's writer is told to end, not waited for.
    end = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < end:
        time.sleep(0.01)
    assert [thread.name for thread in set(threading.enumerate()) - before] == []
