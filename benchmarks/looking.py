"""How long `weft inspect` takes for a sentence, and how long a 200 x 200 alignment takes to be drawn.

    python benchmarks/looking.py RUN "a sentence of 30 tokens" [--rounds 5]

RUN is a translator. The command is timed whole, from the start of Python to the page on the disk; CPU seconds
count where other work shares the machine. The alignment is made a page, a PNG and an SVG; where there is a
Chromium, the page is opened in it, too, and the time until the heat map is on its canvas is taken.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.serve.browser import Browser, found
from weft.figures.alignment import heat_map
from weft.figures.picture import png, svg
from weft.inspect.page.html import PageHead, document
from weft.inspect.views.view import matrix

SIDE = 200
DRAWN = "document.querySelector('canvas')?.style.width && performance.now()"


def spent() -> float:
    """CPU seconds of this process and of those that it waited for."""
    ours, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ours.ru_utime + ours.ru_stime + others.ru_utime + others.ru_stime


def timed(what: Callable[[], object], rounds: int) -> str:
    """Median CPU seconds and median seconds."""
    work, wall = [], []
    for _ in range(rounds):
        begun, clock = spent(), time.perf_counter()
        what()
        work.append(spent() - begun)
        wall.append(time.perf_counter() - clock)
    return f"{statistics.median(work):.2f} CPU seconds, {statistics.median(wall):.2f} s, medians of {rounds}"


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("run")
    asked.add_argument("sentence")
    asked.add_argument("--rounds", type=int, default=5)
    given = asked.parse_args()
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "weft", "inspect", given.run, given.sentence]
    command += ["--output", str(folder / "page.html")]

    def inspect() -> None:
        subprocess.run(command, check=True, capture_output=True)

    print(f"weft inspect, {len(given.sentence.split())} words: {timed(inspect, given.rounds)}")
    weights = np.random.default_rng(1).dirichlet(np.full(SIDE, 0.05), SIDE)
    words = [f"word{number}" for number in range(SIDE)]
    item = matrix("attention", weights, words, words)
    block = {"kind": "matrices", "pick": "a", "each": "b", "groups": [{"name": "1", "items": [item]}]}
    page = document(PageHead("alignment", []), [("Alignment", [block])])

    def draw(make: Callable[..., object]) -> Callable[[], object]:
        return lambda: make(heat_map(weights, words, words, title="alignment"))

    def write() -> object:
        return document(PageHead("alignment", []), [("Alignment", [block])])

    print(f"an alignment of {SIDE} x {SIDE} as a page: {timed(write, given.rounds)}")
    for name, make in (("PNG", png), ("SVG", svg)):
        print(f"as {name}: {timed(draw(make), given.rounds)}")
    if found() is None:
        print("no Chromium here: the page was not opened")
        return
    (folder / "alignment.html").write_text(page, "utf-8")
    browser = Browser(folder / "profile")
    drawn = []
    for _ in range(given.rounds):
        browser.open((folder / "alignment.html").as_uri())
        browser.wait(DRAWN)
        drawn.append(browser.run(DRAWN))
    browser.close()
    print(f"drawn in Chromium {statistics.median(drawn):.0f} ms after the page was asked for, at the latest")


main()
