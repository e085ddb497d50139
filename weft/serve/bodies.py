"""Read the bodies of requests: within limits of size and time, and only for those who have a key.

Read next: forms.py; guard.py.
"""

import asyncio
import re

from starlette.requests import ClientDisconnect, Request

from weft.serve.limits import Refusal, ServerLimits

ADMIT = "weft.admit"
"""Name in the scope of a function that checks a request's `api_key`; guard.py sets it."""
EARLY = 64_000
"""Bytes of an upload after which its API key must have come."""

_KEY = re.compile(rb'name="?api_key"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,1000})\r\n--')
LINGER = 16  # a body that is too large is read up to this multiple of the limit


class Gone(Exception):
    """Raised when the client has closed the connection before its answer was ready."""


def admit(request: Request, key: object) -> None:
    """Check the key of a request, once."""
    if ADMIT in request.scope:
        request.scope.pop(ADMIT)(key)


def _admit_upload(request: Request, begun: bytearray) -> None:
    """Check the key in the beginning of a form with a file, before the rest is read."""
    found = _KEY.search(begun)
    try:
        admit(request, found[1].decode("utf-8", "replace") if found else None)
    except Refusal as refusal:
        refusal.closes = True
        raise


async def body_of(request: Request, limits: ServerLimits) -> bytes:
    """The body of a request.

    Most clients read the response only after they have sent everything, so a body that is too large is
    read and discarded. If it is far too large, or arrives too slowly, the connection is closed instead.
    """
    most, seconds = limits.body_bytes, limits.body_seconds
    declared = request.headers.get("content-length", "0")
    comes = int(declared[:18]) if declared.isdigit() else 0
    waits = (
        request.headers.get("expect", "").lower() == "100-continue"
    )  # it waits for our reply before it sends
    body = bytearray()
    received, whole = 0, False
    try:
        async with asyncio.timeout(seconds):
            parts = request.stream()
            while not whole and comes <= (most if waits else LINGER * most):
                part = await anext(parts, b"")
                whole = not part
                received += len(part)
                comes = max(comes, received)
                if comes <= most:
                    body += part
                if len(body) > EARLY and not whole and ADMIT in request.scope:
                    _admit_upload(request, body)
    except ClientDisconnect:
        raise Gone from None
    except TimeoutError:
        if comes <= most:
            sentence = f"the body did not arrive within {seconds:g} seconds; send it faster, or send less"
            raise Refusal(408, sentence, closes=True) from None
    if comes > most:
        sentence = f"the body is larger than {most:,} bytes; send less at once"
        raise Refusal(413, sentence, closes=not whole)
    request._body = bytes(body)  # where Request.body() keeps it; form() reads it
    return request._body
