"""A soak of the server: mixed requests for some time, and what it cost. Run it for two hours with

    python -m tests.serve.soak RUNS --seconds 7200

where RUNS is a folder with the runs toy (translates), prose (language model), label (classifies) and tags.
It prints the memory of the server each minute, the time of short requests, how long the server took to leave,
and every answer of 5xx that was not asked for. test_soak.py runs it for two minutes.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.serve.client import ask, post
from weft.serve.keys import new_key

ROOT = Path(__file__).resolve().parents[2]
BUSY = {429, 503}
"""Statuses of a server that has too much to do: they are asked for."""
FORM = "multipart/form-data; boundary=e"


class Report(NamedTuple):
    """What a soak found.

    Args:
        requests: number of answers by kind of request and status.
        short: seconds of each short request.
        first_mib, last_mib: memory of the server after the first tenth of the time, and at the end.
        cpu: seconds that the server computed.
        unasked: answers of 5xx that were not asked for.
        left: seconds from SIGTERM, with requests in progress, to the end of the server.
    """

    requests: Counter[tuple[str, int]]
    short: list[float]
    first_mib: float
    last_mib: float
    unasked: list[str]
    left: float
    cpu: float

    def p99(self) -> float:
        """Seconds within which 99 of 100 short requests were answered."""
        return sorted(self.short)[int(0.99 * (len(self.short) - 1))]


class Client:
    """One client that asks at random.

    Args:
        where: the address of the server.
        key: an API key.
        seed: of its choices.
        pause: seconds between two requests, on average.
    """

    def __init__(self, where: str, key: str, seed: int, pause: float = 0.0) -> None:
        self.pause = pause
        self.where = where
        self.random = random.Random(seed)
        self.key = key
        self.headers = {"Authorization": f"Bearer {key}"}
        self.count: Counter[tuple[str, int]] = Counter()
        self.short: list[float] = []
        self.unasked: list[str] = []
        self.kinds: dict[str, Callable[[], int]] = {
            "translate": self._translate,
            "long": self._long,
            "complete": self._complete,
            "stream": self._stream,
            "predict": self._predict,
            "document": self._document,
            "look": self._look,
            "disconnect": self._disconnect,
            "slow reader": self._slow_reader,
            "wrong key": self._wrong_key,
            "nonsense": self._nonsense,
            "attack": self._attack,
        }

    def run(self, until: float) -> None:
        """Ask until the time is over."""
        while time.monotonic() < until:
            kind = self.random.choice(list(self.kinds))
            try:
                status = self.kinds[kind]()
            except OSError as error:
                if time.monotonic() > until:  # the server leaves
                    break
                status = 0
                self.unasked.append(f"{kind}: {error!r}")
            self.count[kind, status] += 1
            time.sleep(2 * self.pause * self.random.random())
            if status >= 500 and status not in BUSY:
                self.unasked.append(f"{kind}: {status}")

    def _text(self, words: int) -> str:
        return " ".join(self.random.choices(["alpha", "beta", "gamma", "delta", "eta", "🙂", "x1"], k=words))

    def _translate(self) -> int:
        begun = time.monotonic()
        given = {"q": self._text(4), "source": "xx", "target": "yy"}
        status = post(f"{self.where}/translate", given, self.headers).status
        if status == 200:
            self.short.append(time.monotonic() - begun)
        return status

    def _long(self) -> int:
        texts = [self._text(30) + "." for _ in range(40)]
        given = {"q": texts, "source": "xx", "target": "yy", "api_key": self.key}
        return post(f"{self.where}/translate", given).status

    def _complete(self) -> int:
        given = {"prompt": "the cat", "max_tokens": self.random.randint(1, 40)}
        return post(f"{self.where}/v1/completions", given, self.headers).status

    def _stream(self) -> int:
        given = {"prompt": "the", "max_tokens": 20, "stream": True}
        return post(f"{self.where}/v1/completions", given, self.headers).status

    def _predict(self) -> int:
        given = {"run": self.random.choice(["label", "tags"]), "inputs": ["this was great", "the dog"]}
        return post(f"{self.where}/predict", given, self.headers).status

    def _document(self) -> int:
        text = f"<p>{self._text(9)}</p>\n" * self.random.randint(1, 20)
        fields = {"source": "xx", "target": "yy"}
        parts = [
            f'--e\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()
        ]
        parts += [
            f'--e\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n{text}\r\n',
            "--e--\r\n",
        ]
        body = "".join(parts).encode()
        reply = ask(f"{self.where}/translate_file", body, FORM, headers=self.headers)
        return ask(reply.body["translatedFileUrl"]).status if reply.status == 200 else reply.status

    def _look(self) -> int:
        path = self.random.choice(
            ["/", "/languages", "/health/ready", "/metrics", "/openapi.json", "/v1/models"]
        )
        return ask(self.where + path, headers=self.headers).status

    def _wrong_key(self) -> int:
        headers = {"Authorization": "Bearer wrong"}
        return post(f"{self.where}/translate", {"q": "alpha", "source": "xx", "target": "yy"}, headers).status

    def _nonsense(self) -> int:
        path = self.random.choice(["/translate", "/predict", "/v1/completions", "/nowhere", "/api/watch"])
        body = self.random.choice([b"[" * 900, b"{}", b"\xff", b'{"q": 7}', self.random.randbytes(300)])
        return ask(self.where + path, body, "application/json", headers=self.headers).status

    def _attack(self) -> int:
        """What once stopped a server: charsets, cookies, depth, and a document of a client that leaves."""
        charset = self.random.choice(["punycode", "utf-7", f"unknown-{self.random.random()}" + "x" * 9000])
        form = b'--e\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"x" * 9999 + b"-\r\n--e--\r\n"
        cookie = 'weft_key="' + '\\"' * 4000 + '"'
        deep = b'{"q": ' + b"[" * 900 + b"]" * 900 + b"}"
        slow = self.random.choice(["<sup>" * 300, "\u00aba. " * 400, "a? " * 500, "<!--" * 400])
        given = {"q": slow, "source": "xx", "target": "yy", "format": "html"}
        post(f"{self.where}/translate", given, self.headers)
        statuses = {
            ask(f"{self.where}/translate", form, f"{FORM}; charset={charset}").status,
            ask(f"{self.where}/v1/models", headers={"Cookie": cookie}).status,
            ask(f"{self.where}/translate", deep, "application/json", headers=self.headers).status,
        }
        host, port = self.where.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as line:
            body = (
                b'--e\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"a. " * 999
            )
            head = f"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
            line.sendall(f"{head}Content-Type: {FORM}\r\nContent-Length: 9000\r\n\r\n".encode() + body)
        return max(statuses - {400, 401, 415}, default=400)

    def _open(self) -> socket.socket:
        host, port = self.where.removeprefix("http://").split(":")
        line = socket.create_connection((host, int(port)), timeout=30)
        given = json.dumps({"prompt": "the", "max_tokens": 200, "stream": True})
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
        line.sendall(
            f"{head}Content-Type: application/json\r\nContent-Length: {len(given)}\r\n\r\n{given}".encode()
        )
        return line

    def _disconnect(self) -> int:
        with self._open():
            time.sleep(self.random.random() / 5)
        return 200

    def _slow_reader(self) -> int:
        with self._open() as line:
            for _ in range(5):
                line.recv(20)
                time.sleep(0.1)
        return 200


def cpu_seconds(process: int) -> float:
    """Seconds that a process has computed, and its children that have ended."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, numbers)) / os.sysconf("SC_CLK_TCK")


def memory_mib(process: int) -> float:
    """Memory of a process and its children that is in the machine's."""
    found = subprocess.run(
        ["ps", "-o", "rss=", "--pid", str(process), "--ppid", str(process)], capture_output=True
    )
    return sum(map(int, found.stdout.split())) / 1024


def soak(runs: Path, seconds: float, clients: int = 6, pause: float = 0.0) -> Report:
    """Start a server and ask it for some time, with a model that is replaced again and again."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        copies = Path(folder)
        for name in ("toy", "prose", "label", "tags"):
            shutil.copytree(runs / name, copies / name)
        key, line = new_key("alice")
        (copies / "keys.txt").write_text(line)
        process, where = stack.enter_context(_server(copies))
        found = [Client(where, key, number, pause) for number in range(clients)]
        started, until = cpu_seconds(process.pid), time.monotonic() + seconds
        noted = time.monotonic()
        threads = [threading.Thread(target=one.run, args=(until,), daemon=True) for one in found]
        for thread in threads:
            thread.start()
        time.sleep(seconds / 10)
        first = memory_mib(process.pid)
        while time.monotonic() < until:
            os.utime(copies / "toy" / "model.safetensors")  # the same model, which is loaded again
            time.sleep(min(5.0, max(0.0, until - time.monotonic())))
            if time.monotonic() > noted + 60:
                noted, used = time.monotonic(), cpu_seconds(process.pid) - started
                print(
                    f"{time.strftime('%H:%M:%S')}  {memory_mib(process.pid):.0f} MiB  {used:.0f} CPU s",
                    flush=True,
                )
        last, begun, cpu = memory_mib(process.pid), time.monotonic(), cpu_seconds(process.pid) - started
        process.send_signal(signal.SIGTERM)
        code, left = process.wait(60), time.monotonic() - begun
        for thread in threads:
            thread.join(60)
        count = sum((one.count for one in found), Counter[tuple[str, int]]())
        unasked = [one for client in found for one in client.unasked]
        unasked += [f"the server ended with code {code}"] if code else []
        return Report(
            count, [one for client in found for one in client.short], first, last, unasked, left, cpu
        )


@contextlib.contextmanager
def _server(copies: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "weft",
        "serve",
        *(copies / name for name in ("toy", "prose", "label", "tags")),
    ]
    command += ["--port", "0", "--api-keys", copies / "keys.txt"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = re.search(r"http://\S+", said)
        assert address, said
        threading.Thread(
            target=lambda: [print(one, end="") for one in process.stderr or ()], daemon=True
        ).start()
        try:
            yield process, address[0]
        finally:
            process.kill()


def main() -> None:
    """Run it and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests of a client")
    given = parser.parse_args()
    report = soak(given.runs, given.seconds, given.clients, given.pause)
    for (kind, status), count in sorted(report.requests.items()):
        print(f"{kind:12} {status} {count:7,}")
    print(f"memory {report.first_mib:.0f} MiB, at the end {report.last_mib:.0f} MiB; {report.cpu:.0f} CPU s")
    print(f"short requests: {len(report.short):,}, 99 of 100 within {report.p99():.2f} seconds")
    print(f"the server left {report.left:.1f} seconds after SIGTERM")
    print("\n".join(report.unasked) or "no answer of 5xx that was not asked for")


if __name__ == "__main__":
    main()
