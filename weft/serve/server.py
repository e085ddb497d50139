"""The server: a socket, uvicorn, and a graceful shutdown. Read next: connections.py; app.py."""

import asyncio
import contextlib
import functools
import logging
import signal
import socket
import ssl
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import uvicorn

from weft.errors import ConfigError
from weft.serve.app import Application
from weft.serve.connections import Connection, room

GRACE_SECONDS = 30
BACKLOG = 2048  # connections that may wait to be accepted


class Tls(NamedTuple):
    """Files in PEM format.

    Args:
        certificate: the certificate, followed by those that lead to a known authority.
        key: its private key, without a password.
    """

    certificate: Path
    key: Path

    def check(self) -> None:
        """Read both files.

        Raises:
            ConfigError: they are missing, damaged, or do not fit together.
        """
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:  # ssl.SSLError is one
            why = getattr(error, "reason", None) or error.strerror or str(error)
            raise ConfigError(
                f"--tls-cert {self.certificate} --tls-key {self.key}: cannot be used ({why}); expected a "
                "certificate and its private key without a password, both in PEM format"
            ) from error


class Server(uvicorn.Server):
    """Answers what has been asked before it ends on SIGTERM or Ctrl-C; closes slow connections.

    Args:
        serving: the application.
        tls: certificate and private key (PEM); None for plain HTTP.
        listens: called once it listens.
    """

    def __init__(
        self, serving: Application, tls: Tls | None = None, *, listens: Callable[[], None] = lambda: None
    ) -> None:
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # its warnings are about requests
        limits = replace(serving.limits, connections=room(serving.limits.connections))
        super().__init__(
            uvicorn.Config(
                serving.app,
                http=functools.partial(Connection, limits=limits, idle={}),  # type: ignore[arg-type]
                ws="none",
                limit_concurrency=limits.connections + 1,  # beyond it a request is answered with 503
                log_level="error",  # warnings are about what clients send, and clients can send a lot
                use_colors=False,  # no escape sequences, see weft/wording.py
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_SECONDS,
                timeout_keep_alive=5,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self.serving = serving
        self._listens = listens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; like uvicorn's, but a time limit holds for TLS handshakes too."""
        loop, config = asyncio.get_running_loop(), self.config
        make = functools.partial(
            config.http_protocol_class,
            config=config,  # type: ignore[call-arg]
            server_state=self.server_state,
            app_state={},
        )
        seconds = self.serving.limits.header_seconds if config.ssl else None
        self.servers = []
        for one in sockets or []:
            # One connection in each round of the loop, so that all are counted and no worker takes them all.
            self.servers.append(
                await loop.create_server(
                    make, sock=one, ssl=config.ssl, ssl_handshake_timeout=seconds, backlog=1
                )
            )
            one.listen(BACKLOG)
        self.started = True
        self._listens()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, answer what has been asked, and refuse what could still come."""
        await super().shutdown(sockets)
        self.serving.drain()

    def retire(self, sig: int, frame: types.FrameType | None) -> None:
        """Another worker takes over: as at a shutdown, but no answer is given up before its deadline."""
        self.config.timeout_graceful_shutdown = int(self.serving.limits.deadline_seconds) + 1
        self.handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replace uvicorn's, which raises the signal again at the end: a requested shutdown is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield  # in tests; only the main thread receives signals
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        if hasattr(signal, "SIGUSR1"):
            before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self.retire)
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def bound(host: str, port: int) -> socket.socket:
    """A listening address; port 0 takes a free one.

    Raises:
        ConfigError: it is in use, or no address of this machine.
    """
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
) -> None:
    """Answer until a signal comes and what was begun is finished; `listens` is called once it listens."""
    asyncio.run(Server(serving, tls, listens=listens).serve(sockets=[listening]))
