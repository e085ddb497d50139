"""What a list gains over sentences one by one, memory over many requests, the wait for the first token.

    python benchmarks/serving.py RUN SENTENCES [--rounds 5] [--requests 1000]

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
import time
import urllib.request
from http.client import HTTPResponse
from pathlib import Path

from weft.run import open_run

ROWS = 64


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(process: int) -> float:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask(address: str, content: object) -> HTTPResponse:
    body, kind = json.dumps(content).encode(), {"Content-Type": "application/json"}
    found: HTTPResponse = urllib.request.urlopen(urllib.request.Request(address, data=body, headers=kind))
    return found


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("run")
    asked.add_argument("sentences", type=Path)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--requests", type=int, default=1000)
    given = asked.parse_args()
    lines = [line for line in given.sentences.read_text("utf-8").splitlines() if line.strip()][:ROWS]
    command = [sys.executable, "-m", "weft", "serve", given.run, "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = re.findall(r"http://\S+", server.stderr.readline())[0]
        data = open_run(given.run, device="cpu").task.data
        pair = {"source": data.source, "target": data.target}
        ask(f"{address}/translate", {"q": lines, **pair}).read()
        ratios, walls = [], []
        for _ in range(given.rounds):
            begun, wall = cpu_seconds(server.pid), time.monotonic()
            together = json.load(ask(f"{address}/translate", {"q": lines, **pair}))["translatedText"]
            middle, wall_middle = cpu_seconds(server.pid), time.monotonic()
            alone = [
                json.load(ask(f"{address}/translate", {"q": line, **pair}))["translatedText"]
                for line in lines
            ]
            ratios.append((cpu_seconds(server.pid) - middle) / (middle - begun))
            walls.append((time.monotonic() - wall_middle) / (wall_middle - wall))
            same = sum(one == other for one, other in zip(together, alone, strict=True))
        print(f"{len(lines)} sentences as a list and one by one: {same} answers alike")
        print(
            f"one by one takes {statistics.median(ratios):.1f} times the CPU seconds ({given.rounds} rounds)"
        )
        print(f"and {statistics.median(walls):.1f} times the wall clock")
        waits = []
        for line in lines[:20]:
            begun = time.monotonic()
            with ask(f"{address}/api/watch", {"text": line}) as answer:
                answer.readline()
                waits.append(time.monotonic() - begun)
                answer.read()
        print(f"first draft of the page: median {1000 * statistics.median(waits):.0f} ms after the request")
        sizes = []
        for number in range(given.requests):
            ask(f"{address}/translate", {"q": lines[number % len(lines)][:40], **pair}).read()
            if number % max(1, given.requests // 4) == 0:
                sizes.append(resident_mb(server.pid))
        sizes.append(resident_mb(server.pid))
        print(f"resident MB over {given.requests} requests: {', '.join(f'{one:.0f}' for one in sizes)}")
        server.terminate()


main()
