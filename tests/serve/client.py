"""Requests with the standard library alone, so that nothing is sent but what a test says."""

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

ASKED = {"q": "alpha", "source": "xx", "target": "yy"}
"""What the toy translates."""


class Reply(NamedTuple):
    status: int
    body: Any  # JSON read, or text
    headers: dict[str, str]  # their names in lower case


def ask(
    address: str,
    data: bytes | None = None,
    kind: str | None = None,
    method: str | None = None,
    headers: dict[str, str] | None = None,
) -> Reply:
    """A request; GET without data, POST with it."""
    headers = {**({"Content-Type": kind} if kind else {}), **(headers or {})}
    request = urllib.request.Request(address, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return _reply(answer.status, answer.read(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return _reply(error.code, error.read(), dict(error.headers))


def post(address: str, content: Any, headers: dict[str, str] | None = None) -> Reply:
    """JSON."""
    return ask(address, json.dumps(content).encode(), "application/json", headers=headers)


def _reply(status: int, body: bytes, headers: dict[str, str]) -> Reply:
    text, headers = body.decode("utf-8"), {name.lower(): value for name, value in headers.items()}
    is_json = headers.get("content-type", "").startswith("application/json")
    return Reply(status, json.loads(text) if is_json and text else text, headers)


def events(text: str) -> list[Any]:
    """Server-sent events; [DONE] as a text."""
    found = [part.removeprefix("data: ") for part in text.split("\n\n") if part]
    return [one if one == "[DONE]" else json.loads(one) for one in found]
