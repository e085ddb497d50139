"""Requests per second and their times at growing numbers of clients: Weft, and LibreTranslate beside it.

    python benchmarks/load.py RUN SENTENCES [--clients 1 8 32 128] [--seconds 20] [--rounds 3] [--workers 1]
    python benchmarks/load.py RUN SENTENCES --peer VENV        # VENV/bin/libretranslate; the same model
    python benchmarks/load.py RUN SENTENCES --hostile          # short requests beside one long one
    python benchmarks/load.py RUN SENTENCES --memory 100000    # resident memory over so many translations

RUN is a translator; for --peer a Transformer with a shared vocabulary, whose recipe says `beam: 4,
length_penalty: 0.2`, which Argos Translate cannot change. Each client has one connection and sends the next
sentence when its answer has come. Rounds of the servers alternate; the figures are medians of the rounds. The
servers run one after the other, each alone, with OMP_NUM_THREADS of the environment. Linux only.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft.run import open_run

ROWS = 200
LONG = 2000  # characters of a line without an end of a sentence


class Server(NamedTuple):
    """A running server."""

    name: str
    port: int
    process: int
    pair: dict[str, str]


class Load(NamedTuple):
    """What some clients measured."""

    rate: float  # requests a second
    p50: float  # milliseconds
    p99: float
    failed: int


class Client:
    """One connection; it is opened again if the server closes it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, text: str | list[str]) -> int:
        """Translate; the HTTP status."""
        body = json.dumps({"q": text, **self.server.pair}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        for _ in range(2):
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self.server.port)
            reader, writer = self._streams
            try:
                writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
                answer = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(re.findall(rb"content-length: (\d+)", answer)[0]))
            except (asyncio.IncompleteReadError, ConnectionError):
                self.close()
                continue
            if b"connection: close" in answer:
                self.close()
            return int(answer.split()[1])
        return 0

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def measure(server: Server, lines: list[str], clients: int, seconds: float) -> Load:
    """Ask for some time with a number of clients at once."""
    times: list[float] = []
    failed = 0
    begun = time.monotonic()

    async def ask_on(number: int) -> None:
        nonlocal failed
        client, place = Client(server), number * 7
        while time.monotonic() < begun + seconds:
            asked = time.monotonic()
            failed += await client.ask(lines[place % len(lines)]) != 200
            times.append(1000 * (time.monotonic() - asked))
            place += clients
        client.close()

    await asyncio.gather(*(ask_on(number) for number in range(clients)))
    took = time.monotonic() - begun
    times.sort()
    return Load(len(times) / took, statistics.median(times), times[int(0.99 * (len(times) - 1))], failed)


async def hostile(server: Server, lines: list[str], seconds: float, rounds: int) -> None:
    """Times of single short requests, alone and beside a client that sends one long request after another."""
    long = (" ".join(line.rstrip(".!?") for line in lines) * 9)[:LONG]
    ratios = []
    for _ in range(rounds):
        alone = await measure(server, lines, 1, seconds)
        statuses: list[int] = []
        task = asyncio.ensure_future(_ask_on(server, long, statuses))
        beside = await measure(server, lines, 1, seconds)
        task.cancel()
        ratios.append((beside.p50 / alone.p50, beside.p99 / alone.p99))
        print(
            f"alone p50 {alone.p50:.0f} ms, p99 {alone.p99:.0f} ms; beside long requests ({len(long)} "
            f"characters, {statuses.count(200)} answered, {len(statuses) - statuses.count(200)} refused) "
            f"p50 {beside.p50:.0f} ms, p99 {beside.p99:.0f} ms",
            flush=True,
        )
    p50, p99 = (statistics.median(one) for one in zip(*ratios, strict=True))
    print(f"beside a long request: p50 times {p50:.2f}, p99 times {p99:.2f} (medians of {rounds} rounds)")


async def _ask_on(server: Server, text: str, statuses: list[int]) -> None:
    client = Client(server)
    try:
        while True:
            statuses.append(await client.ask(text))
    finally:
        client.close()


async def memory(server: Server, lines: list[str], count: int) -> None:
    """Resident memory after each tenth of many translations, sent by eight clients."""
    done = 0
    print("resident MB after", end="", flush=True)

    async def ask_on(number: int) -> None:
        nonlocal done
        client, place = Client(server), number
        while done < count:
            done += 1
            at = done
            assert await client.ask(lines[place % len(lines)][: 5 + place % 61]) == 200
            place += 8
            if at % max(1, count // 10) == 0:
                print(f" {at:,}: {_resident_mb(server.process):.0f}", end="", flush=True)
        client.close()

    await asyncio.gather(*(ask_on(number) for number in range(8)))
    print()


def _resident_mb(process: int) -> float:
    """The resident memory of a process and its children, shared pages counted once (PSS)."""
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.M)
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(found[1]) / 1024 + sum(_resident_mb(int(child)) for child in children) if found else 0.0


@contextlib.contextmanager
def _weft(run: Path, workers: int, pair: dict[str, str]) -> Iterator[Server]:
    command = [sys.executable, "-m", "weft", "serve", str(run), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(
        [*command, "--workers", str(workers)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())[0])
        try:
            yield Server(f"weft, {workers} worker{'s' * (workers > 1)}", port, process.pid, pair)
        finally:
            process.terminate()


@contextlib.contextmanager
def _libretranslate(venv: Path, run: Path, pair: dict[str, str]) -> Iterator[Server]:
    """LibreTranslate with the model of a run in a folder of its own; without a network."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        package = Path(folder) / "model.argosmodel"
        export = [sys.executable, "-m", "weft", "export", str(run), "--to", "argos", "--output", str(package)]
        subprocess.run(export, check=True)
        environment = {**os.environ, "HOME": folder, "ARGOS_PACKAGES_DIR": f"{folder}/packages"}
        environment |= {"ARGOS_PACKAGE_INDEX": "http://127.0.0.1:9/", "ARGOS_COMPUTE_TYPE": "float32"}
        environment |= {"XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder, "XDG_CONFIG_HOME": folder}
        for name in ("OMP_NUM_THREADS", "ARGOS_INTRA_THREADS"):
            environment[name] = os.environ.get("OMP_NUM_THREADS", str(os.cpu_count()))
        install = "import sys; from argostranslate import package; package.install_from_path(sys.argv[1])"
        subprocess.run([venv / "bin" / "python", "-c", install, package], check=True, env=environment)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [venv / "bin" / "libretranslate", "--host", "127.0.0.1", "--port", str(port)]
        with (
            open(Path(folder) / "log", "w") as log,
            subprocess.Popen(
                [*command, "--disable-web-ui", "--threads", "8"],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
            ) as process,
        ):
            server = Server("libretranslate", port, process.pid, pair)
            try:
                asyncio.run(_listens(server))
                yield server
            finally:
                process.terminate()


async def _listens(server: Server) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            if await Client(server).ask("hello") == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(1)
    raise SystemExit(f"{server.name}: does not answer; its log was in its folder")


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("run", type=Path)
    asked.add_argument("sentences", type=Path)
    asked.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 128])
    asked.add_argument("--seconds", type=float, default=20)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--workers", type=int, nargs="+", default=[1])
    asked.add_argument("--peer", type=Path, help="environment with LibreTranslate")
    asked.add_argument("--hostile", action="store_true")
    asked.add_argument("--memory", type=int, default=0, metavar="N")
    given = asked.parse_args()
    lines = [line for line in given.sentences.read_text("utf-8").splitlines() if line.strip()][:ROWS]
    pipeline = open_run(given.run, device="cpu").pipeline
    pair = dict(zip(("source", "target"), pipeline.directions()[0], strict=True))  # type: ignore[attr-defined]
    if given.hostile or given.memory:
        with _weft(given.run, given.workers[0], pair) as server:
            asyncio.run(measure(server, lines, 4, 2))  # warm
            if given.hostile:
                asyncio.run(hostile(server, lines, given.seconds, given.rounds))
            if given.memory:
                asyncio.run(memory(server, lines, given.memory))
        return
    found: dict[tuple[str, int], list[Load]] = {}
    for _ in range(given.rounds):
        servers = [_weft(given.run, workers, pair) for workers in given.workers]
        servers += [_libretranslate(given.peer, given.run, pair)] if given.peer else []
        for one in servers:
            with one as server:
                asyncio.run(measure(server, lines, 4, 2))  # warm
                for clients in given.clients:
                    load = asyncio.run(measure(server, lines, clients, given.seconds))
                    found.setdefault((server.name, clients), []).append(load)
    print("| server | clients | requests/s | p50 ms | p99 ms | failed |\n|---|--:|--:|--:|--:|--:|")
    for (name, clients), loads in found.items():
        rate, p50, p99 = (statistics.median(one[at] for one in loads) for at in range(3))
        failed = sum(one.failed for one in loads)
        print(f"| {name} | {clients} | {rate:.1f} | {p50:.0f} | {p99:.0f} | {failed} |")


main()
