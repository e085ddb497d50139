"""The server: a socket, uvicorn, and a graceful shutdown. Read next: app.py."""

import asyncio
import contextlib
import signal
import socket
import ssl
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import uvicorn

from weft.errors import ConfigError
from weft.serve.app import Serving

GRACE_SECONDS = 30


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
    """On SIGTERM and Ctrl-C, answers waiting requests and tells new ones to retry later.

    Args:
        serving: the application.
        tls: certificate and private key (PEM); None for plain HTTP.
    """

    def __init__(self, serving: Serving, tls: Tls | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                serving.app,
                log_level="warning",
                use_colors=False,  # no escape sequences, see weft/visible.py
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

    def handle_exit(self, sig: int, frame: types.FrameType | None) -> None:
        """Handle a signal; uvicorn then closes the socket and waits for open requests."""
        self.serving.drain()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replace uvicorn's, which raises the signal again at the end: a requested shutdown is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield  # in tests; only the main thread receives signals
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
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
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(2048)
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"--host {host} --port {port}: cannot listen there ({why}); choose another with --port"
        ) from error
    return found


def serve(serving: Serving, listening: socket.socket, tls: Tls | None = None) -> None:
    """Answer until a signal comes and what was begun is finished."""
    asyncio.run(Server(serving, tls).serve(sockets=[listening]))
