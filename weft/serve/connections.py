"""Connections of slow, silent and very many clients: time limits, and a maximum number.

A connection that does not send the header of a request in time is closed, and so is one that does not read
its answer. When there are too many, those without an open request are closed, the oldest first.
Read next: server.py, which uses it; forms.py, where a body has a time limit.
"""

import asyncio
import contextlib
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from weft.serve.limits import ServerLimits

LAST_SECONDS = 1.0
"""How long a connection may still send a request when the server is shutting down."""

FILES = 64
"""File descriptors for everything but connections."""

CLOSE = (b"connection", b"close")


class Connection(H11Protocol):
    """One connection; see uvicorn's class for the arguments that are not named here.

    Args:
        limits: `connections` and `header_seconds` of it.
        idle: connections of the server without an open request, the oldest first.
    """

    def __init__(self, *, limits: ServerLimits, idle: dict["Connection", None], **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._idle = idle
        self._silence: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called by the event loop for a new connection."""
        super().connection_made(transport)
        while self._idle and len(self.connections) > self._limits.connections:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            self.connections.discard(oldest)
            oldest.transport.abort()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop for each part of a request."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._begun()

    def on_response_complete(self) -> None:
        """Called at the end of each answer; the next request may have arrived already."""
        before = self.cycle
        self._wait()
        super().on_response_complete()
        if self.cycle is not before:
            self._begun()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop at the end."""
        self._forget()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Called by the event loop when the client does not read its answer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.body_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Called by the event loop when the client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def timeout_keep_alive_handler(self) -> None:
        """Close; an answer of which a part was not read is given up after some time."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self._limits.body_seconds, self.transport.abort)

    def shutdown(self) -> None:
        """The server is shutting down: answer an open request, or one that is on its way, and close."""
        self._last = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LAST_SECONDS, self._shut)
        else:
            self._close_after_answer()

    def _shut(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            super().shutdown()

    def _wait(self) -> None:
        """A request may come now."""
        self._forget()
        if not self.transport.is_closing():
            self._idle[self] = None
            seconds = self._limits.header_seconds
            self._silence = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _begun(self) -> None:
        """A request has come."""
        self._forget()
        if self._last:
            self._close_after_answer()

    def _forget(self) -> None:
        self._idle.pop(self, None)
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _close_after_answer(self) -> None:
        self.cycle.keep_alive = False
        if not self.cycle.response_started:
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE]


def room(wanted: int) -> int:
    """The number of connections that the limit of open files allows, at most `wanted`.

    A process without free file descriptors can neither accept a connection nor open a file. The limit is
    raised as far as the system lets it.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + FILES
    if 0 <= soft < needed:
        most = needed if hard < 0 else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return wanted if soft < 0 else max(1, min(wanted, soft - FILES))
