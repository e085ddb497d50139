"""Slow, silent and very many clients: each is closed in time, and the server answers the others."""

import contextlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from logging import LogRecord
from pathlib import Path
from typing import Any

import pytest

from tests.serve.client import ask, post
from tests.serve.conftest import application, listening
from tests.serve.test_reloading import until

ROOT = Path(__file__).resolve().parent.parent.parent
GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextlib.contextmanager
def limited(runs: Path, **limits: Any) -> Iterator[str]:
    with listening(application(runs / "toy", **limits)) as where:
        yield where


@pytest.fixture(scope="module")
def hurried(library: None, runs: Path) -> Iterator[str]:
    """A server with short time limits."""
    with limited(runs, header_seconds=0.5, body_seconds=0.3) as where:
        yield where


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def rest(line: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):  # closed upon what was sent and not read
        while came := line.recv(100_000):
            answer += came
    return answer


def test_an_answer_on_a_kept_connection_waits_for_no_acknowledgement(
    hurried: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    at_once: list[int] = []
    made = H11Protocol.connection_made

    def watched(self: H11Protocol, transport: Any) -> None:
        made(self, transport)
        accepted = transport.get_extra_info("socket")
        at_once.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(H11Protocol, "connection_made", watched)
    with connected(hurried) as line:
        line.sendall(GET + b"Connection: close\r\n\r\n")
        assert b"200 OK" in rest(line)
    assert at_once == [1]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([], id="silent"),
        pytest.param([b"GET /health HT"], id="half a line", marks=pytest.mark.slow),
        pytest.param([bytes([one]) for one in GET[:40]], id="a byte at a time", marks=pytest.mark.slow),
        pytest.param([GET + b"\r\n", b"", *[b"GET"[:1]] * 9], id="after an answer", marks=pytest.mark.slow),
    ],
)
def test_a_connection_without_a_whole_header_is_closed(hurried: str, parts: list[bytes]) -> None:
    begun = time.monotonic()
    with connected(hurried) as line, contextlib.suppress(ConnectionError):
        for part in parts:
            line.sendall(part)
            time.sleep(0.05)
        assert rest(line).count(b"HTTP/1.1 200") == (b"\r\n\r\n" in b"".join(parts))
    assert time.monotonic() - begun < 10


def test_a_body_that_comes_too_slowly_is_refused(hurried: str) -> None:
    with connected(hurried) as line:
        line.sendall(b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        answer = rest(line)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive within 0.3 seconds" in answer
    assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.parametrize(
    ("head", "parts"),
    [
        pytest.param("Content-Length: 1000000000000", [], id="far too large, as it says"),
        pytest.param("Content-Length: 1500000", [b"x" * 100], id="never sent"),
        pytest.param("Content-Length: 1500000\r\nExpect: 100-continue", [], id="asks first"),
        pytest.param("Transfer-Encoding: chunked", [b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 16, id="no end"),
    ],
)
def test_a_large_body_is_not_waited_for_and_its_line_closed(
    hurried: str, head: str, parts: list[bytes]
) -> None:
    with connected(hurried) as line:
        line.sendall(f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n".encode())
        for part in parts:
            line.sendall(part)
        answer = rest(line)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nconnection: close\r\n" in answer.lower()


def asking(stack: contextlib.ExitStack, address: str, client: str, *head: str) -> socket.socket:
    """A connection of a client at 127.0.0.x with the header of a request of 60,000 bytes."""
    host, port = address.removeprefix("http://").split(":")
    line = socket.create_connection((host, int(port)), timeout=20, source_address=(client, 0))
    lines = ["POST /translate HTTP/1.1", "Host: localhost", "Content-Length: 60000", *head, "", ""]
    stack.enter_context(line).sendall("\r\n".join(lines).encode())
    return line


def begun(stack: contextlib.ExitStack, address: str, client: str) -> socket.socket:
    """The same with most of its body, once the server is ready to read it."""
    line = asking(stack, address, client, "Expect: 100-continue")
    assert line.recv(10_000).startswith(b"HTTP/1.1 100 ")
    line.sendall(b" " * 50_000)
    return line


def ended(line: socket.socket, rest: int = 60_000) -> bytes:
    """The answer after the rest of the body."""
    line.sendall(b" " * rest)
    answer = b""
    while not answer.endswith(b"}"):
        answer += line.recv(10_000)
    return answer


def test_the_bodies_of_one_client_and_of_all_are_limited_and_short_requests_go_on(
    library: None, runs: Path
) -> None:
    most = {"body_bytes": 60_000, "document_bytes": 50_000, "bodies_bytes": 240_000}
    with limited(runs, body_seconds=20, **most) as address, contextlib.ExitStack() as stack:
        asked = {"q": "alpha", "source": "xx", "target": "yy"}
        lines = [begun(stack, address, "127.0.0.2")]  # 43,616 of its bytes count
        answer = ended(asking(stack, address, "127.0.0.2"))
        assert b"HTTP/1.1 429 " in answer and b"\r\nretry-after: 5\r\n" in answer
        assert b"your requests in progress have more than 60,000 bytes; wait for" in answer
        assert b"connection: close" not in answer.lower()  # all of it was read
        lines += [begun(stack, address, f"127.0.0.{number}") for number in range(3, 7)]
        answer = ended(asking(stack, address, "127.0.0.8"))
        assert b"HTTP/1.1 503 " in answer and b"\r\nretry-after: 5\r\n" in answer
        assert b"all requests in progress have more than 240,000 bytes; try again later" in answer
        beginning = time.monotonic()
        assert post(f"{address}/translate", asked).status == 200
        assert time.monotonic() - beginning < 5
        for line in lines[1:]:  # whether a client sends the rest or leaves, its bytes are free then
            assert ended(line, 10_000).startswith(b"HTTP/1.1 400 ")
        lines[0].close()
        until(lambda: ended(asking(stack, address, "127.0.0.2")).startswith(b"HTTP/1.1 400 "))
        for number in range(3, 9):
            assert ended(asking(stack, address, f"127.0.0.{number}")).startswith(b"HTTP/1.1 400 ")


def test_files_count_and_so_do_chunks_as_they_arrive(library: None, runs: Path) -> None:
    most = {"body_bytes": 60_000, "document_bytes": 50_000, "bodies_bytes": 60_000}
    with limited(runs, body_seconds=20, **most) as address, contextlib.ExitStack() as stack:
        head = "POST {} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{}\r\n"
        form = "Content-Type: multipart/form-data; boundary=e\r\nExpect: 100-continue\r\n"
        file = b'--e\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"a" * 49_000
        lines = [stack.enter_context(connected(address)) for _ in range(2)]
        for line, path in zip(lines, ("/translate_file", "/translate"), strict=True):
            line.sendall(head.format(path, form).encode())
            assert line.recv(10_000).startswith(b"HTTP/1.1 100 ")
        lines[0].sendall(b"%x\r\n%s\r\n" % (len(file), file))
        until(lambda: ended(asking(stack, address, "127.0.0.1")).startswith(b"HTTP/1.1 429 "))
        lines[1].sendall(b"%x\r\n%s\r\n" % (len(file), file))
        assert ended(lines[1], 0).startswith(b"HTTP/1.1 429 ")
        lines[0].close()
        until(lambda: ended(asking(stack, address, "127.0.0.1")).startswith(b"HTTP/1.1 400 "))


def test_a_request_of_two_lengths_is_refused_and_its_line_closed(hurried: str) -> None:
    with connected(hurried) as line:
        head = "Content-Length: 5\r\nTransfer-Encoding: chunked"
        line.sendall(f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n0\r\n\r\n".encode())
        line.sendall(GET + b"\r\n")
        answer = rest(line)
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
    assert b"expected Content-Length or Transfer-Encoding, got both" in answer


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answers_is_left(hurried: str) -> None:
    host, port = hurried.removeprefix("http://").split(":")
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(20)
        line.connect((host, int(port)))
        line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 600)
        time.sleep(2)
        assert 0 < rest(line).count(b"HTTP/1.1 200") < 600


def test_clients_that_leave_a_stream_fill_no_log(library: None, runs: Path, logged: list[LogRecord]) -> None:
    from fastapi.responses import StreamingResponse

    left, ended = threading.Event(), threading.Event()

    async def parts() -> AsyncIterator[bytes]:
        yield b"begun"
        left.wait(20)  # the loop too, which so learns of it by writing
        for _ in range(20):
            yield b"more"
        ended.set()

    serving = application()
    serving.app.add_api_route("/parts", lambda: StreamingResponse(parts()))
    with listening(serving) as where:
        line = connected(where)
        line.sendall(GET.replace(b"/health", b"/parts") + b"\r\n")
        while b"begun" not in line.recv(1000):
            pass
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        line.close()
        left.set()
        assert ask(f"{where}/health").status == 200 and ended.wait(20)
    assert not logged


def test_silent_connections_make_room_the_oldest_first(library: None, runs: Path) -> None:
    with limited(runs, connections=5) as address, contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connected(address)) for _ in range(5)]
        for line in (lines[4], lines[0]):  # an answer to the last one means that all are accepted
            line.sendall(GET + b"Content-Length: 1\r\n\r\n")  # answered although its body never comes
            assert line.recv(1000).startswith(b"HTTP/1.1 200")
        lines.append(stack.enter_context(connected(address)))
        lines[-1].sendall(GET + b"Connection: close\r\n\r\n")
        assert rest(lines[-1]).startswith(b"HTTP/1.1 200")
        assert rest(lines[1]) == b""  # the one that was silent for longest
        lines[2].sendall(GET + b"\r\n")
        assert lines[2].recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_a_silent_client_of_https_is_closed_in_time(
    library: None, runs: Path, certificate: tuple[Path, Path]
) -> None:
    from weft.serve.server import Tls

    serving = application(header_seconds=0.5)
    with listening(serving, Tls(*certificate)) as where, connected(where.replace("https", "http")) as line:
        begun = time.monotonic()
        assert rest(line) == b"" and time.monotonic() - begun < 10


@pytest.mark.slow
def test_more_silent_sockets_than_open_files_stop_no_server_and_fill_no_log(
    library: None, runs: Path
) -> None:
    command = [sys.executable, "-m", "weft", "serve", str(runs / "toy"), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    with (
        subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=few_files
        ) as process,
        contextlib.ExitStack() as stack,
    ):
        assert process.stderr is not None
        where = re.findall(r"http://\S+", process.stderr.readline())[0]
        silent = [stack.enter_context(connected(where)) for _ in range(230)]
        begun = time.monotonic()
        for _ in range(20):
            assert ask(f"{where}/health").status == 200
        assert time.monotonic() - begun < 9  # before the silent ones have reached their time limit
        assert len(silent) == 230
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
