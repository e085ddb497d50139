"""Record what Weft does on a GPU, and compare it with the aims: one command, under nine minutes on one card.

    python benchmarks/gpu_aims.py                     every section that an aim needs, then the aims
    python benchmarks/gpu_aims.py --file FILE         resumes FILE: sections that it has are not run again
    python benchmarks/gpu_aims.py --file FILE --only-aims

Each section of gpu.py runs in a process of its own, with a time limit. Its JSON lines go to
results/gpu-DATE-DEVICE.jsonl, where the last run of a section counts. An aim is a ratio of two figures of one
section, so of one card; where a figure is missing there is no verdict.
Read next: gpu.py.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

LIMITS = {"train": 120, "rnn": 45, "search": 80, "lm": 90, "profile": 40, "cells": 45, "mixers": 120}
"""Seconds for each section, in the order in which they are run."""

PEAKS = {"H100 PCIe": 756, "H100 NVL": 835, "H100": 989, "H200": 989, "GH200": 989, "B200": 2250, "A100": 312}
"""Dense bfloat16 peaks in TFLOP/s, as NVIDIA's data sheets have them; the first name that fits counts."""

Lines = list[dict[str, Any]]


class Aim(NamedTuple):
    """A ratio and what it should be."""

    what: str
    found: float | None
    least: float | None = None
    most: float | None = None

    def verdict(self) -> str:
        """One line."""
        sign, bound = (">=", self.least) if self.least is not None else ("<=", self.most)
        if self.found is None:
            return f"no figure   {self.what} (aim {sign} {bound:g})"
        met = self.found >= (self.least or 0) and self.found <= (self.most or float("inf"))
        return f"{'met' if met else 'MISSED':11} {self.what}: {self.found:.2f} (aim {sign} {bound:g})"


def ratio(speeds: dict[str, float], ours: str, theirs: str) -> float | None:
    """The fastest of ours over the fastest of theirs; names begin with these words."""
    mine = [speed for name, speed in speeds.items() if name.startswith(ours)]
    other = [speed for name, speed in speeds.items() if name.startswith(theirs)]
    return max(mine) / max(other) if mine and other else None


def aims(lines: Lines) -> Iterator[Aim]:
    """Every aim, from the lines of a file."""

    def of(section: str, **given: Any) -> dict[str, Any]:
        fits = (one for one in lines if one.get("section") == section and given.items() <= one.items())
        return next(reversed(list(fits)), {})

    base = of("train", size="base", tokens=32000).get("tokens_per_s", {})
    compiled = {name: base[name] for name in base if name == "transformers_compiled"}
    weft = {name: speed for name, speed in base.items() if name.startswith("weft")}
    yield Aim("Transformer base over transformers compiled", ratio(weft | compiled, "weft", "trans"), 1.2)
    for tokens in (2000, 16000):
        tiny = of("train", size="tiny", tokens=tokens).get("tokens_per_s", {})
        what = f"Transformer 4+4x128, {tokens:,} tokens, over transformers"
        yield Aim(what, ratio(tiny, "weft", "transformers"), 3)
    lm = of("lm")
    yield Aim(
        "GPT-2 small over transformers compiled",
        ratio(lm.get("tokens_per_s", {}), "weft", "transformers_compiled"),
        1.05,
    )
    name, flops = of("machine").get("device", ""), lm.get("model_teraflops_per_s", {})
    peak = next((each for card, each in PEAKS.items() if card in name), None)
    best = max((speed for way, speed in flops.items() if way.startswith("weft")), default=None)
    yield Aim("GPT-2 small, % of the peak", 100 * best / peak if best and peak else None, 30)
    rnn = of("rnn", width=512).get("tokens_per_s", {})
    yield Aim("RNN with attention 512 over a tutorial's loop", ratio(rnn, "weft", "tutorial"), 3)
    for rows, least in ((64, 4), (1, 8)):
        speeds = of("search", size="base", rows=rows).get("sentences_per_s", {})
        greedy = {way: speed for way, speed in speeds.items() if way.endswith("_1")}
        yield Aim(
            f"greedy search, {rows} sentences, over transformers", ratio(greedy, "weft", "trans"), least
        )
    for cell in sorted({one["cell"] for one in lines if one.get("section") == "cells"}) or ["every cell"]:
        yield Aim(f"{cell}, times cuDNN's LSTM", of("cells", cell=cell).get("times_lstm"), most=3)
    for cell in ("gla", "gated_delta", "retention"):
        found = of("mixers", cell=cell)
        mine = [found[way] for way in ("weft", "weft_graph") if way in found]
        share = min(mine) / found["fla"] if mine and "fla" in found else None
        yield Aim(f"{cell}, time over flash-linear-attention's", share, most=1)
    busy = of("profile", model="transformer base", graphs=True)
    share = 100 * busy["busy_ms"] / busy["ms_per_update"] if busy else None
    yield Aim("card busy during an update of base, %", share, 85)


def machine() -> dict[str, Any]:
    there = torch.cuda.is_available()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "section": "machine",
        "gpu": there,
        "device": torch.cuda.get_device_name() if there else platform.processor() or "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "date": datetime.date.today().isoformat(),
    }


def run(section: str, file: Path) -> None:
    """Run a section and append its lines; one that ends with `done` is complete."""
    command = [sys.executable, str(Path(__file__).with_name("gpu.py")), section]
    with file.open("a") as out:
        try:
            subprocess.run(command, stdout=out, timeout=LIMITS[section], check=True)
            ended: dict[str, Any] = {"done": section}
        except subprocess.TimeoutExpired:
            ended = {"fail": section, "error": f"longer than {LIMITS[section]} s"}
        except subprocess.CalledProcessError as error:
            ended = {"fail": section, "error": f"exit code {error.returncode}"}
        print(json.dumps(ended), file=out)


def read(file: Path) -> Lines:
    """The lines of a file; one that a killed process left half written is skipped."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def main(start: Callable[[str, Path], None] = run) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--file", type=Path, help="of the results")
    parser.add_argument("--only-aims", action="store_true", help="run nothing")
    asked = parser.parse_args()
    about = machine()
    name = "".join(letter if letter.isalnum() else "-" for letter in about["device"].lower())
    file = asked.file or Path("results") / f"gpu-{about['date']}-{name}.jsonl"
    if not asked.only_aims:
        if os.environ.get("WEFT_BENCH_DEVICE", "cuda") == "cuda" and not torch.cuda.is_available():
            sys.exit("torch sees no GPU; WEFT_BENCH_DEVICE=cpu is a dry run with tiny sizes")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not any(line.get("section") == "machine" for line in read(file)):
            file.write_text(json.dumps(about) + "\n")
        for section in LIMITS:
            if {"done": section} in read(file):
                continue
            print(f"{section}, at most {LIMITS[section]} s", flush=True)
            start(section, file)
    lines = read(file)
    for line in lines:
        if "fail" in line:
            print(f"failed: {line['fail']}: {line['error']}")
    if any(line.get("gpu") for line in lines):
        print(*(aim.verdict() for aim in aims(lines)), sep="\n")
    else:
        print("a dry run on a CPU: its figures say nothing about a GPU")
    print(f"all figures: {file}")


if __name__ == "__main__":
    main()
