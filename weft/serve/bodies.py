"""Limits of size and time for the bodies of requests. Read next: forms.py, which reads them."""

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serve.forms import ADMIT
from weft.serve.limits import Refusal, ServerLimits

LINGER = 16
"""A body that is too large is read up to this multiple of the limit: most clients read the answer only after
they have sent everything."""
FIELDS = 10_000
"""Bytes of a form besides its file."""


KEY = "an API key is required to send more than {:,} bytes; send it in the header Authorization: Bearer KEY"


class BodyLimits:
    """Refuses bodies that are too large or arrive too slowly, while they are read.

    A form with a document may be larger than other bodies, once its key is known.

    Args:
        app: the application to call.
        limits: limits of requests.
        documents: the address that takes documents.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, documents: str) -> None:
        self.app = app
        self.limits = limits
        self.documents = documents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").lower()
        document = scope["path"] == self.documents and kind.startswith("multipart/form-data")
        most = self.limits.body_bytes
        until = time.monotonic() + self.limits.body_seconds
        declared = headers.get("content-length", "0")
        comes = int(declared[:18]) if declared.isdecimal() else 0
        waits = headers.get("expect", "").lower() == "100-continue"  # for our reply before it sends
        received, whole = 0, False

        async def part() -> Message:
            nonlocal received, whole, comes
            message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
            received += len(message.get("body", b""))
            comes = max(comes, received)
            whole = message["type"] == "http.disconnect" or not message.get("more_body", False)
            return message

        async def limited() -> Message:
            nonlocal most
            if whole:
                return await receive()
            if document and ADMIT not in scope:
                most = self.limits.document_bytes + FIELDS
            sentence = f"the body is larger than {most:,} bytes; send less at once"
            try:
                if comes <= most:
                    message = await part()
                if comes > most:
                    if document and ADMIT in scope:
                        raise Refusal(401, KEY.format(most), closes=True)
                    while not whole and comes <= (most if waits else LINGER * most):
                        await part()
                    raise Refusal(413, sentence, closes=not whole)
                return message
            except TimeoutError:
                if comes > most:
                    raise Refusal(413, sentence, closes=True) from None
                seconds = self.limits.body_seconds
                late = f"the body did not arrive within {seconds:g} seconds; send it faster, or send less"
                raise Refusal(408, late, closes=True) from None

        await self.app(scope, limited, send)
