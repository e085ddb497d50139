"""A worker: one engine in its own process and virtual environment, asked in JSON lines.

The driver (translate.py, through engines.py) writes one request a line to the standard input and reads
one answer a line: {"do": "prepare" | "train" | "search" | "save" | "load" | "quit", ...}. CPU seconds
are those of this whole process, all its threads, around the engine's own work and nothing else.
Read next: peers/engine.py.
"""

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from workload import Workload

from peers.engine import Engine, Sizes


def engine_of(name: str, sizes: Sizes, dtype: str) -> Engine:
    """The one engine that the file peers/<name>.py holds."""
    module = importlib.import_module(f"peers.{name}")
    here = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Engine)]
    return next(v for v in here if v.__module__ == module.__name__)(sizes, dtype)


class Worker:
    """Answers requests; the methods are the requests."""

    def prepare(self, engine: str, dtype: str, sizes: dict, workload: str, threads: int, seed: int) -> dict:
        """Load the work and build the engine."""
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.workload = Workload.load(Path(workload))
        self.engine = engine_of(engine, Sizes(**sizes), dtype)
        model = getattr(self.engine, "model", None)
        count = sum(p.numel() for p in model.parameters()) if isinstance(model, torch.nn.Module) else 0
        return {
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "trains": self.engine.trains,
            "widths": self.engine.widths,
            "about": self.engine.about(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "parameters": count,
        }

    def train(self, first: int, count: int) -> dict:
        """`count` updates on the batches from number `first`, round and round."""
        batches = [self.workload.train_batch(first + i) for i in range(count)]
        losses, clock = timed(lambda: [self.engine.update(batch) for batch in batches])
        return {"target_tokens": sum(b.target_tokens for b in batches), "loss": losses[-1], **clock}

    def search(self, batches: list[int], width: int, forced: bool, alone: bool = False) -> dict:
        """Translate these batches of the test set; with `alone` the first sentence of each, by itself."""
        asked = [self.workload.test_batch(number, forced) for number in batches]
        if alone:
            asked = [(source[:1, : lengths[0]], lengths[:1], *rest) for source, lengths, *rest in asked]
        found, clock = timed(lambda: [self.engine.search(*rows[:2], width, *rows[2:]) for rows in asked])
        outputs = [row for rows in found for row in rows]
        tokens = sum(map(len, outputs))
        return {"sentences": len(outputs), "output_tokens": tokens, "outputs": outputs, **clock}

    def save(self, folder: str) -> dict:
        """Leave the weights in a folder."""
        self.engine.save(Path(folder))
        return {}

    def load(self, folder: str) -> dict:
        """Take weights over from a folder."""
        self.engine.load(Path(folder))
        return {}


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The work's result, its CPU seconds (all threads of this process), and those of the wall clock."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    clock = {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result, {**clock, "peak_mib": round(peak)}


def main() -> None:
    """Answer until asked to quit. What a peer prints goes to the standard error, not among the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        if do == "quit":
            return
        try:
            answer = getattr(worker, do)(**request)
        except Exception as error:  # noqa: BLE001 (whatever it is, the driver is told and goes on)
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
