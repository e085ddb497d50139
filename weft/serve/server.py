"""The server: a socket, uvicorn with its limits, quiet connections, and a graceful shutdown.

Uvicorn has no time limit for a header or for reading an answer, and beyond `limit_concurrency` it refuses
every client, however quiet the others are, so that silent sockets stop it for as long as they like. A proxy
has such limits (deploy/nginx.conf); `QuietConnections` is for a server without one. Read next: app.py.
"""

import asyncio
import atexit
import contextlib
import faulthandler
import logging
import math
import os
import signal
import socket
import ssl
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from weft.errors import ConfigError
from weft.serve.app import Application
from weft.serve.limits import ServerLimits

GRACE_SECONDS = 30
"""How long requests may take after the signal to end; then their connections are closed."""

END_SECONDS = 10
"""How long the rest may take after that; then the process prints where it waits, and ends with code 1."""

LAST_SECONDS = 1.0
"""How long connections may still send a request when the server is shutting down."""

ACCEPT_SECONDS = 5.0
"""Maximum time for which a server that is shutting down accepts connections."""

QUIET_SECONDS = 0.2  # it stops accepting once no client has connected for so long
BACKLOG = 2048  # connections that may wait to be accepted
FILES = 64  # file descriptors for everything but connections


class Tls(NamedTuple):
    """Files in PEM format."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Read both files."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:  # ssl.SSLError is one
            why = getattr(error, "reason", None) or error.strerror or str(error)
            raise ConfigError(
                f"--tls-cert {self.certificate} --tls-key {self.key}: cannot be used ({why}); expected a "
                "certificate and its private key without a password, both in PEM format"
            ) from error


class Quiet(NamedTuple):
    """What a connection waits for, and since when."""

    cycle: object  # uvicorn's, of its last request
    waits: bool  # for a request, not for an answer
    unread: int  # bytes of answers that the client has not read
    since: float


class QuietConnections:
    """Closes connections whose clients send or read nothing for too long, or the oldest of too many."""

    def __init__(self, connections: set[Any], limits: ServerLimits) -> None:
        self._open = connections
        self._limits = limits
        self._seen: dict[H11Protocol, Quiet] = {}  # the longest quiet first

    def admit(self, new: H11Protocol) -> None:
        """Add an accepted connection; if there are too many, close the oldest tenth of those that wait."""
        if len(self._open) >= self._limits.connections:
            self.close_late()
            waiting = [one for one, seen in self._seen.items() if seen.waits]
            for one in waiting[: 1 + len(waiting) // 10]:  # a tenth, as finding the oldest takes a while
                one.transport.abort()
                self._open.discard(one)
        self._seen[new] = Quiet(None, True, 0, time.monotonic())

    def close_late(self) -> None:
        """Look at all connections, and close those that have been quiet for too long."""
        now = time.monotonic()
        kept, changed = {}, {}
        for one in [*self._seen, *(self._open - self._seen.keys())]:
            if one not in self._open:
                continue
            before, unread = self._seen.get(one), one.transport.get_write_buffer_size()
            waits = not unread and (one.cycle is None or one.cycle.response_complete)
            if before is None or before[:2] != (one.cycle, waits) or unread > before.unread:
                changed[one] = Quiet(one.cycle, waits, unread, now)
                continue
            kept[one] = before._replace(unread=unread)
            limit = self._limits.header_seconds if waits else self._limits.body_seconds
            if now - before.since > limit and (waits or unread):
                one.transport.abort()
        self._seen = kept | changed


class Server(uvicorn.Server):
    """Uvicorn's, which closes quiet connections and answers what has been asked before it ends."""

    def __init__(
        self,
        serving: Application,
        tls: Tls | None = None,
        *,
        listens: Callable[[], None] = lambda: None,
        grace_seconds: int = GRACE_SECONDS,
    ) -> None:
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # its warnings are about requests
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # and these about clients that have left
        self._limits = replace(serving.limits, connections=room(serving.limits.connections))
        super().__init__(
            uvicorn.Config(
                serving.app,
                http="h11",
                ws="none",
                limit_concurrency=self._limits.connections + 1,  # beyond it a request is answered with 503
                log_level="critical",  # the rest is about what clients send, and clients can send a lot
                use_colors=False,  # no escape sequences, see weft/wording.py
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=grace_seconds,
                timeout_keep_alive=5,
                callback_notify=self._look,
                timeout_notify=0,  # as often as uvicorn looks, every second
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self._grace = grace_seconds
        self._quiet = QuietConnections(self.server_state.connections, self._limits)
        self._listens = listens
        self._count = 0  # of accepted connections

    async def _look(self) -> None:
        self._quiet.close_late()

    def _accepted(self) -> H11Protocol:
        new = H11Protocol(self.config, self.server_state, {})
        self._quiet.admit(new)
        self._count += 1
        return new

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; like uvicorn's, but a time limit holds for TLS handshakes too."""
        loop, secure = asyncio.get_running_loop(), self.config.ssl
        seconds = self._limits.header_seconds if secure else None
        self.servers = []
        for one in sockets or []:
            # One connection in each round of the loop, so that all are counted and no worker takes them all.
            self.servers.append(
                await loop.create_server(
                    self._accepted, sock=one, ssl=secure, ssl_handshake_timeout=seconds, backlog=1
                )
            )
            one.listen(BACKLOG)
        self.started = True
        self._listens()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept what the system has accepted, answer it and what is on its way, and close each connection.

        The system resets connections that wait in a socket which is closed. Uvicorn cancels what is late, but
        a cancelled request still waits for a client that does not read, so its connection is closed.
        """
        self.server_state.default_headers.append((b"connection", b"close"))
        last = time.monotonic() + self._grace
        end = time.monotonic() + ACCEPT_SECONDS
        before = -1
        while self._count != before and time.monotonic() < end:
            before = self._count
            await asyncio.sleep(QUIET_SECONDS)
        loop, secure = asyncio.get_running_loop(), self.config.ssl
        seconds = self._limits.header_seconds if secure else None
        waiting = [line for one in sockets or [] for line in waiting_in(one)]
        for one in self.servers:
            one.close()
        await asyncio.gather(
            *(
                loop.connect_accepted_socket(self._accepted, one, ssl=secure, ssl_handshake_timeout=seconds)
                for one in waiting
            ),
            return_exceptions=True,
        )
        end = time.monotonic() + LAST_SECONDS
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.05)
        self.config.timeout_graceful_shutdown = max(0, math.ceil(last - time.monotonic()))
        await super().shutdown(sockets)
        for left in self.server_state.connections:
            left.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LAST_SECONDS)

    def handle_exit(self, sig: int, frame: types.FrameType | None) -> None:
        """Begin to end. Uvicorn's raises the signal again at the end, as if that were a failure."""
        if not self.should_exit:
            faulthandler.dump_traceback_later(self._grace + END_SECONDS, exit=True, file=2)
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def waiting_in(listening: socket.socket) -> list[socket.socket]:
    """The connections that the system has accepted for a socket."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # none is left
        while len(found) < BACKLOG:
            found.append(listening.accept()[0])
            found[-1].setblocking(False)
    return found


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


def bound(host: str, port: int) -> socket.socket:
    """A listening address; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio sends at once (TCP_NODELAY); otherwise each answer on a kept
        # connection waits 40 ms for an acknowledgement.
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(BACKLOG)
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"--host {host} --port {port}: cannot listen there ({why}); choose another with --port"
        ) from error
    return found


def serve(
    serving: Application,
    listening: socket.socket,
    tls: Tls | None = None,
    *,
    listens: Callable[[], None] = lambda: None,
    grace_seconds: int = GRACE_SECONDS,
) -> None:
    """Answer until a signal comes and what was begun is finished; for the arguments see Server."""
    server = Server(serving, tls, listens=listens, grace_seconds=grace_seconds)
    asyncio.run(server.serve(sockets=[listening]))
    serving.drain()
    faulthandler.cancel_dump_traceback_later()
    atexit.register(_leave)


def _leave() -> None:
    """End at once: Python aborts if a thread still computes while it ends, and else tidies up for seconds."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(0)
