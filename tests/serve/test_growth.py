"""What a client sends is read in time that grows with its size, before and after its key is known."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.serve.client import ask
from tests.serve.conftest import listening
from tests.serve.test_guard import served

FORM, PARTS, JSON = "application/x-www-form-urlencoded", "multipart/form-data; boundary=e", "application/json"
ASKED = {"q": "alpha", "source": "xx", "target": "yy"}
HEAD = b'--e\r\nContent-Disposition: form-data; name="q"\r\n'


def query(size: int) -> tuple[str, bytes | None, str]:
    return "/translate?" + "&".join(map(str, range(size // 6))), None, ""


def body(
    path: str, make: Callable[[int], bytes], kind: str = JSON
) -> Callable[[int], tuple[str, bytes, str]]:
    return lambda size: (path, make(size), kind)


def field(name: str, make: Callable[[int], Any], path: str = "/translate") -> Any:
    return body(path, lambda size: json.dumps({**ASKED, name: make(size)}).encode())


READERS = {
    "names in a query string": query,
    "names in a form": body("/translate", lambda size: b"&".join(b"%d=" % n for n in range(size // 6)), FORM),
    "one name in a form": body("/translate", lambda size: b"q=a&" * (size // 4), FORM),
    "lines that name a key": body(
        "/translate", lambda size: HEAD + b'name="api_key"\r\n' * (size // 16), PARTS
    ),
    "parts": body("/translate", lambda size: (HEAD + b"\r\n\r\n") * (size // 60), PARTS),
    "no end of a part": body("/translate_file", lambda size: HEAD + b"\r\n" + b"\r\n--" * (size // 4), PARTS),
    "format": field("format", lambda size: "x" * size),
    "backquotes in a field": field("format", lambda size: "`$." * (size // 3)),
    "names of fields": body(
        "/translate", lambda size: json.dumps({str(n): 1 for n in range(size // 9)}).encode()
    ),
    "unknown fields": body("/v1/completions", lambda size: json.dumps({"x" * size: 1}).encode()),
    "a list of nothing": field("q", lambda size: [None] * (size // 5)),
    "brackets": body("/translate", lambda size: b"[" * size),
    "digits": body("/translate", lambda size: b'{"alternatives": ' + b"1" * size + b"}"),
    "pairs": field("drop", lambda size: [[0, 1]] * (size // 8), "/api/watch"),
    "token numbers": field("prompt", lambda size: [[1]] * (size // 5), "/v1/completions"),
    "lists without token numbers": field("prompt", lambda size: [[]] * (size // 4), "/v1/completions"),
    "one word": field("q", lambda size: "a" * (size // 9)),
    "zeros of a placeholder": field("q", lambda size: "%" + "0" * (size // 9)),
    "spaces in HTML": body(
        "/translate",
        lambda size: json.dumps({**ASKED, "format": "html", "q": "a" + " " * (size // 90) + "b"}).encode(),
    ),
    "a file in base64": field("inputs", lambda size: "A" * size, "/predict"),
}


@pytest.fixture(scope="module")
def reading(library: None, runs: Path) -> Any:
    with listening(served(runs, access())) as where:
        yield where


def access() -> Any:
    from weft.serve.guard import Access

    return Access()


@pytest.mark.parametrize("name", READERS)
def test_four_times_the_request_takes_at_most_about_four_times_as_long(reading: str, name: str) -> None:
    def seconds(size: int) -> float:
        path, data, kind = READERS[name](size)
        begun = time.process_time()
        assert ask(reading + path, data, kind or None).status < 500
        return time.process_time() - begun

    most = 12_000 if urlsplit(READERS[name](60)[0]).query else 45_000
    short = min(seconds(most) for _ in range(2))
    long = min(seconds(4 * most) for _ in range(2))
    assert long < 8 * short + 0.2, (short, long)  # 16 times, if it were quadratic
    assert long < 2
