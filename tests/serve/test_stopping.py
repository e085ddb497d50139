"""A search pauses at each of its steps, and a server ends in time, whatever is in progress."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from weft.search import compiled as whole
from weft.serve import server as stopping
from weft.serve.batcher import ClientLeft
from weft.serve.limits import ServerLimits
from weft.serve.predicting import predicting
from weft.serve.served import ServedRun
from weft.serve.translation import translating
from weft.text.segments import Sentence


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_step_of_a_translation_pauses(
    library: None, runs: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "SLICE_SECONDS", 0)  # a call of compiled code takes one step
    run = ServedRun(runs / "toy", "toy", "cpu", ())
    assert run.rewriter is not None
    decoding = replace(run.rewriter.decoding, precision=precision)
    pauses = []

    def stopped() -> bool:
        pauses.append(1)
        return len(pauses) > 100

    work = translating(run, "yy", decoding)
    found = work([Sentence("alpha beta gamma delta")], stopped)
    assert found[0][0].text == "uno due tre quattro"
    assert len(pauses) >= 5
    pauses += [1] * 100
    with pytest.raises(ClientLeft):
        work([Sentence("alpha beta gamma delta")], stopped)


def test_every_text_whose_words_are_placed_pauses(library: None, runs: Path) -> None:
    """The words that the vocabulary lacks are placed by the model's attention, one text after the other."""
    run = ServedRun(runs / "toy", "toy", "cpu", ())
    assert run.rewriter is not None
    pauses: list[int] = []
    work = translating(run, "yy", run.rewriter.decoding)
    work([Sentence(f"alpha {number} 🙂 beta") for number in range(7)], lambda: bool(pauses.append(1)))
    assert len(pauses) >= 7


def test_every_step_of_an_answer_of_predict_pauses(
    library: None, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "SLICE_SECONDS", 0)
    run = ServedRun(runs / "toy", "toy", "cpu", ())
    pauses: list[int] = []
    work = predicting(run, ServerLimits())
    assert (
        work(["alpha beta gamma delta"], lambda: bool(pauses.append(1)))[0]["text"] == "uno due tre quattro"
    )
    assert len(pauses) >= 5 + 2  # steps; and before the first and after each answer


SERVER = """
import sys, time
from pathlib import Path
import torch
from weft.serve import batcher, completions
from weft.serve.app import Application
from weft.serve.limits import ServerLimits
from weft.serve.served import named
from weft.serve.server import bound, serve

def long_step(*_):
    print("computes", flush=True)
    end = time.monotonic() + 2.5  # beyond the second of grace
    while time.monotonic() < end:
        torch.rand(30, 30).exp_()

completions.go_on = long_step
batcher.LAST_SECONDS = float(sys.argv[1])
place = bound("127.0.0.1", 0)
serving = Application(named([Path(sys.argv[2])], "cpu", ()), ServerLimits())
say = lambda: print(place.getsockname()[1], flush=True)
serve(serving, place, listens=say, grace_seconds=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0, 30], ids=["left computing", "waited for"])
def test_a_signal_ends_a_server_whose_model_computes(library: None, runs: Path, patience: int) -> None:
    """A process that ends while a thread computes is aborted, with code -6, unless it is careful."""
    command = [sys.executable, "-c", SERVER, str(patience), str(runs / "prose")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            address = "127.0.0.1", int(process.stdout.readline())
            with socket.create_connection(address, timeout=20) as line:
                head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n"
                line.sendall(head + b'{"prompt": "the"}')
                assert process.stdout.readline() == b"computes\n"
                begun = time.monotonic()
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
            assert time.monotonic() - begun < 20 + patience
        finally:
            process.kill()


def post(path: str, body: str, length: int | None = None) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return (head + body).encode()


LOOK = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
GREEDY = json.dumps({"model": "prose", "prompt": "the cat", "max_tokens": 512, "stream": True})
LONG = json.dumps({"q": ["alpha beta gamma"] * 60, "source": "xx", "target": "yy"})
CLIENTS = {
    "sends half a header": b"GET / HTTP/1.1\r\nHost: loc",
    "sends half a body": post("/translate", LONG, 999_999),
    "reads no answer": LOOK,
    "reads no answer and sends half a body": LOOK + post("/translate", "{", 500),
    "reads no answer and asks more": LOOK * 20,
    "reads no stream": post("/v1/completions", GREEDY),
    "waits": post("/translate", LONG),
}


@pytest.fixture
def ending(serving: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any, threading.Thread]]:
    """A server of its own, its address and its thread; it gives requests a second to end."""
    monkeypatch.setattr(stopping, "ACCEPT_SECONDS", 0.2)
    place = stopping.bound("127.0.0.1", 0)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # so that answers wait in the server
    server = stopping.Server(serving, grace_seconds=1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server, place.getsockname(), thread


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_ends_whatever_its_clients_do(ending: Any, client: str) -> None:
    server, address, thread = ending
    lines = []
    for _ in range(5):
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(address)
        line.sendall(CLIENTS[client])
        lines.append(line)
    time.sleep(0.3)
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()
    for line in lines:
        line.close()


def test_a_server_that_cannot_leave_is_ended_by_a_clock(
    serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Mock()
    monkeypatch.setattr("faulthandler.dump_traceback_later", clock)
    server = stopping.Server(serving, grace_seconds=7)
    for _ in range(2):
        server.handle_exit(signal.SIGTERM, None)
    clock.assert_called_once_with(17, exit=True, file=2)


@pytest.mark.parametrize("path", ["/health", "/translate?q=alpha&source=xx&target=yy"])
def test_no_connection_is_reset_when_the_server_stops(ending: Any, path: str) -> None:
    """The system has accepted them all; the server has not read most of them."""
    server, address, thread = ending
    server._grace = 30
    lines = []
    for _ in range(150):
        lines.append(socket.create_connection(address, timeout=60))
        lines[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        server.should_exit = True
    assert [line.recv(12) for line in lines] == [b"HTTP/1.1 200"] * 150
    for line in lines:
        line.close()
    thread.join(30)
    assert not thread.is_alive()
