"""What a request says is read in time that grows with its size; of its bytes: ../attacks/test_requests.py."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serve.client import ASKED, ask
from tests.serve.conftest import listening, served


def field(name: str, make: Callable[[int], Any], path: str = "/translate", **more: str) -> Any:
    """The address and the JSON of a request with one long field."""
    return lambda size: (path, json.dumps({**ASKED, **more, name: make(size)}).encode())


READERS = {
    "format": field("format", lambda size: "x" * size),
    "backquotes in a field": field("format", lambda size: "`$." * (size // 3)),
    "unknown fields": lambda size: ("/v1/completions", json.dumps({"x" * size: 1}).encode()),
    "a list of nothing": field("q", lambda size: [None] * (size // 5)),
    "pairs": field("drop", lambda size: [[0, 1]] * (size // 8), "/api/watch"),
    "token numbers": field("prompt", lambda size: [[1]] * (size // 5), "/v1/completions"),
    "lists without token numbers": field("prompt", lambda size: [[]] * (size // 4), "/v1/completions"),
    "one word": field("q", lambda size: "a" * (size // 9)),
    "zeros of a placeholder": field("q", lambda size: "%" + "0" * (size // 9)),
    "spaces in HTML": field("q", lambda size: "a" + " " * (size // 90) + "b", format="html"),
    "raised text in HTML": field("q", lambda size: "<sup>" * (size // 45), format="html"),
    "a file in base64": field("inputs", lambda size: "A" * size, "/predict"),
}


@pytest.fixture(scope="module")
def reading(library: None, runs: Path) -> Any:
    from weft.serve.guard import Access

    with listening(served(runs, Access())) as where:
        yield where


@pytest.mark.parametrize("name", READERS)
def test_four_times_the_request_takes_at_most_about_four_times_as_long(reading: str, name: str) -> None:
    def seconds(size: int) -> float:
        path, data = READERS[name](size)
        begun = time.process_time()
        assert ask(reading + path, data, "application/json").status < 500
        return time.process_time() - begun

    short = min(seconds(45_000) for _ in range(2))
    long = min(seconds(180_000) for _ in range(2))
    assert long < 8 * short + 0.2, (short, long)  # 16 times, if it were quadratic
    assert long < 2
