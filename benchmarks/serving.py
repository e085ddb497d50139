"""What a list gains over one by one, the wait for the first token, a long job, memory over many requests.

    python benchmarks/serving.py RUN SENTENCES [--rounds 5] [--requests 10000] [--only memory]

RUN is a translator, SENTENCES a file with 64 lines of its source language. CPU seconds are those of the
server's process, so that what else runs on the machine counts for little. Linux alone: /proc is read.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from weft.serve.served import ServedRun
from weft.serve.watching import NOTHING, watch

ROWS, WATCHED = 64, 20


class First(Exception):
    """The first draft is there."""


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(process: int) -> float:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask(address: str, content: object) -> HTTPResponse:
    body, kind = json.dumps(content).encode(), {"Content-Type": "application/json"}
    found: HTTPResponse = urllib.request.urlopen(urllib.request.Request(address, data=body, headers=kind))
    return found


def lists(address: str, process: int, lines: list[str], pair: dict[str, str], rounds: int) -> None:
    """All as one list, and one by one: CPU seconds of the server and wall clock."""
    ratios, walls, same = [], [], 0
    ask(f"{address}/translate", {"q": lines, **pair}).read()
    for _ in range(rounds):
        begun, wall = cpu_seconds(process), time.monotonic()
        together = json.load(ask(f"{address}/translate", {"q": lines, **pair}))["translatedText"]
        middle, wall_middle = cpu_seconds(process), time.monotonic()
        alone = [
            json.load(ask(f"{address}/translate", {"q": line, **pair}))["translatedText"] for line in lines
        ]
        ratios.append((cpu_seconds(process) - middle) / (middle - begun))
        walls.append((time.monotonic() - wall_middle) / (wall_middle - wall))
        same = sum(one == other for one, other in zip(together, alone, strict=True))
    print(f"{len(lines)} sentences as a list and one by one: {same} answers alike")
    print(f"one by one takes {statistics.median(ratios):.1f} times the CPU seconds, {rounds} rounds")
    print(f"and {statistics.median(walls):.1f} times the wall clock", flush=True)


def first_drafts(address: str, run: ServedRun, lines: list[str]) -> None:
    """The wait for the first draft: of the page over HTTP, and of the search in this process."""
    given = {"target": run.directions()[0][1], "prefix": "", "sentences": None, "beam": 5, "edits": NOTHING}

    def draft(event: dict[str, Any]) -> None:
        raise First

    served, own = [], []
    for line in lines[:WATCHED]:
        begun = time.monotonic()
        try:
            watch(run, {**given, "text": line}, draft, lambda: False)
        except First:
            own.append(time.monotonic() - begun)
        begun = time.monotonic()
        with ask(f"{address}/api/watch", {"text": line, "beam": 5}) as answer:
            answer.readline()
            served.append(time.monotonic() - begun)
            answer.read()
    both = 1000 * statistics.median(own), 1000 * statistics.median(served)
    print(f"first token: the model's after {both[0]:.0f} ms, the page's after {both[1]:.0f} ms (medians)")
    worst = 1000 * max(there - here for here, there in zip(own, served, strict=True))
    print(f"the page's came at most {worst:.0f} ms after the model's, {len(own)} sentences", flush=True)


def long_job(address: str, lines: list[str], pair: dict[str, str]) -> None:
    """A long list is computed while a short question comes and the server's health is asked for."""
    begun, ends = time.monotonic(), {}

    def long() -> None:
        ask(f"{address}/translate", {"q": lines * 2, "alternatives": 9, **pair}).read()
        ends["long"] = time.monotonic() - begun

    worker = threading.Thread(target=long)
    worker.start()
    time.sleep(0.1)
    asked = time.monotonic()
    with urllib.request.urlopen(f"{address}/health/live") as answer:
        answer.read()
    ends["health"] = time.monotonic() - asked
    ask(f"{address}/translate", {"q": lines[0], **pair}).read()
    ends["short"] = time.monotonic() - begun
    worker.join()
    print(
        f"{2 * len(lines)} sentences with 10 answers each took {ends['long']:.1f} s; health meanwhile "
        f"{1000 * ends['health']:.0f} ms, a sentence that waited for them came after {ends['short']:.1f} s",
        flush=True,
    )


def memory(address: str, process: int, lines: list[str], pair: dict[str, str], requests: int) -> None:
    """What the server holds after each eighth of many requests."""
    print("resident MB after", end="", flush=True)
    for number in range(requests):
        ask(f"{address}/translate", {"q": lines[number % len(lines)][: 5 + number % 31], **pair}).read()
        if (number + 1) % max(1, requests // 10) == 0:
            print(f" {number + 1:,}: {resident_mb(process):.0f}", end="", flush=True)
    print()


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("run", type=Path)
    asked.add_argument("sentences", type=Path)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--requests", type=int, default=10_000)
    asked.add_argument("--only", choices=["answers", "memory"], help="one half of it")
    given = asked.parse_args()
    lines = [line for line in given.sentences.read_text("utf-8").splitlines() if line.strip()][:ROWS]
    command = [sys.executable, "-m", "weft", "serve", str(given.run), "--port", "0", "--device", "cpu"]
    run = ServedRun(given.run, "own", "cpu", ())
    source, target = run.directions()[0]
    pair = {"source": source, "target": target}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = re.findall(r"http://\S+", server.stderr.readline())[0]
        if given.only != "memory":
            lists(address, server.pid, lines, pair, given.rounds)
            first_drafts(address, run, lines)
            long_job(address, lines, pair)
        if given.only != "answers":
            memory(address, server.pid, lines, pair, given.requests)
        server.terminate()


main()
