"""What each cell can remember: all cells and a Transformer on eight problems, with equal parameters and CPU seconds.

    python experiments/memory.py                              # everything that is not measured yet
    python experiments/memory.py --problems parity recall --seeds 3 --seconds 5
    python experiments/memory.py --write                      # docs/appendix/memory.md and its picture

Every finished run is one line of JSON in docs/pictures/memory/runs.jsonl; a run that is there is not repeated, so the
script can be stopped at any time. Read next: memory_page.py, which writes table and picture; study.py, the training.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from memory_page import page

from study import ROOT, learn, machine, plant
from weft.models import Predictor
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.cells.delta import Delta
from weft.nn.cells.elman import Elman
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.gla import GLA
from weft.nn.cells.gru import GRU
from weft.nn.cells.hgrn2 import HGRN2
from weft.nn.cells.local_attention import LocalAttention
from weft.nn.cells.lru import LRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.mamba import Mamba
from weft.nn.cells.mingru import MinGRU
from weft.nn.cells.minlstm import MinLSTM
from weft.nn.cells.mlstm import MLSTM
from weft.nn.cells.orthogonal import Orthogonal
from weft.nn.cells.peephole import Peephole
from weft.nn.cells.retention import Retention
from weft.nn.cells.rglru import RGLRU
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.cells.s4d import S4D
from weft.nn.cells.slstm import SLSTM
from weft.nn.cells.sru import SRU
from weft.nn.cells.ssd import SSD
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.evaluation import measure
from weft.tasks.memory.model import MemoryModel
from weft.tasks.memory.predictor import Rememberer
from weft.tree import leaves

RUNS = ROOT / "docs" / "pictures" / "memory" / "runs.jsonl"
HEADS, ROWS, RATE = 2, 32, 1e-2


class Known(NamedTuple):
    """A cell, and what theory says of it.

    eigenvalues: of the matrix that takes the state to the next step's; tracks: whether that allows parity and
    permutations at every length (None: theory leaves it open); own: whether the cell has a convolution itself.
    """

    cell: Callable[..., Cell]
    eigenvalues: str
    tracks: bool | None = False
    own: bool = False


def _heads(cell: Callable[..., Cell]) -> Callable[..., Cell]:
    return partial(cell, num_heads=HEADS)


NOT_LINEAR, GATED, FIXED = "any, by a nonlinear step", "0 .. 1, by the input", "complex, fixed"
CELLS = {
    "elman": Known(Elman, NOT_LINEAR, True),
    "orthogonal": Known(partial(Orthogonal, activation="modrelu"), NOT_LINEAR, True),
    "gru": Known(GRU, NOT_LINEAR, True),
    "lstm": Known(LSTM, NOT_LINEAR, True),
    "peephole": Known(Peephole, NOT_LINEAR, True),
    "slstm": Known(_heads(SLSTM), NOT_LINEAR, True),
    "mingru": Known(MinGRU, GATED),
    "minlstm": Known(MinLSTM, GATED),
    "sru": Known(SRU, GATED),
    "rglru": Known(_heads(RGLRU), GATED),
    "mamba": Known(Mamba, GATED, own=True),
    "lru": Known(LRU, FIXED),
    "s4d": Known(S4D, FIXED),
    "retention": Known(_heads(Retention), "0 .. 1, fixed"),
    "gla": Known(_heads(GLA), GATED),
    "hgrn2": Known(_heads(HGRN2), GATED),
    "mlstm": Known(_heads(MLSTM), GATED),
    "ssd": Known(_heads(SSD), GATED, own=True),
    "delta": Known(_heads(Delta), "1, and 0 .. 1 along the key", own=True),
    "delta, negative": Known(
        partial(_heads(Delta), negative=True), "1, and -1 .. 1 along the key", True, True
    ),
    "gated_delta": Known(_heads(GatedDelta), "0 .. 1, not diagonal", own=True),
    "rwkv7": Known(_heads(RWKV7), "-0.46 .. 1, not diagonal", None),
    "local attention": Known(
        partial(LocalAttention, num_heads=HEADS, window=8), "none: the last 8 positions"
    ),
    "transformer": Known(Elman, "none: all positions"),
}
PROBLEMS = {
    "parity": MemoryData(problem="cups", symbols=2, length=16, shortest=2, test_length=64),
    "recall": MemoryData(problem="recall", length=8, shortest=2, test_length=16),
    "copying": MemoryData(problem="copying", symbols=5, length=16, shortest=4, test_length=32),
    "five cups": MemoryData(problem="cups", symbols=5, length=16, shortest=2, test_length=64),
    "three cups": MemoryData(problem="cups", symbols=3, length=16, shortest=2, test_length=64),
    "selective": MemoryData(problem="selective", symbols=5, length=16, shortest=6, test_length=32),
    "induction": MemoryData(problem="induction", length=16, shortest=4, test_length=64),
    "adding": MemoryData(problem="adding", length=24, shortest=4, test_length=48),
}


def model(name: str, data: MemoryData, width: int) -> Predictor:
    """One block around a cell; or a Transformer of two, since one cannot find a value by the key before it."""
    if name == "transformer":
        encoder: Any = partial(
            TransformerEncoder, size=width, num_layers=2, num_heads=HEADS, inner=2 * width, dropout=0.0
        )
        encoder = partial(encoder, positions="rotary", norm_kind="rms", activation="geglu")
    else:
        known = CELLS[name]
        steps = 0 if known.own else 4
        block = partial(Block, cell=known.cell, convolution=steps, network=2 * width)
        encoder = partial(RecurrentEncoder, sizes=(width,), cell=block, last_norm="rms")
    return MemoryModel(encoder=encoder, embedding=width).build(data)


def parameters(of: Predictor) -> int:
    """Their number."""
    return sum(one.numel() for one in of.parameters())


def width_for(name: str, data: MemoryData, budget: int) -> int:
    """The largest multiple of 2 HEADS whose model has at most that many parameters, by bisection."""
    low, high = 1, 128
    while high - low > 1:
        middle = (low + high) // 2
        fits = parameters(model(name, data, 2 * HEADS * middle)) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return 2 * HEADS * low


def state_size(of: Predictor) -> int | None:
    """Numbers that a step of the encoder reads from the one before; None if they grow with the sequence."""
    if not isinstance(of.encoder, RecurrentEncoder):
        return None
    found = 0
    for cell in of.encoder.stack.forwards:
        x = torch.zeros(1, cell.in_size)
        state = cell.start(x)
        read = [one.requires_grad_() for one in leaves(state) if one.is_floating_point()]
        y, after = cell.step(x, state)
        total = y.sum() + sum(one.sum() for one in leaves(after))
        grads = torch.autograd.grad(total, read, allow_unused=True)
        found += sum(one.numel() for one, grad in zip(read, grads, strict=True) if grad is not None)
    return found


def run(name: str, problem: str, seed: int, seconds: float, budget: int) -> dict[str, Any]:
    """Train one model for its CPU seconds; its scores at the length of training and beyond."""
    plant(seed)
    data = MemoryData(**{**vars(PROBLEMS[problem]), "seed": seed, "batch_rows": 100})
    width = width_for(name, data, budget)
    learn(
        model(name, data, width), lambda: data.batch("train", torch.arange(2).numpy()), 1
    )  # what is done once
    plant(seed)
    trained = model(name, data, width)
    result = {"width": width, "parameters": parameters(trained), "state": state_size(trained), "updates": 0}
    begun = time.process_time()

    def share() -> float:
        return (time.process_time() - begun) / seconds

    def rate(update: int) -> float:
        result["updates"] = update + 1
        return RATE * min(1.0, (update + 1) / 30) * (0.55 + 0.45 * math.cos(math.pi * min(share(), 1.0)))

    batches: Iterator[Any] = (
        data.batch("train", torch.arange(ROWS).numpy() + at * ROWS) for at in range(1 << 40)
    )
    learn(trained, lambda: next(batches), 1 << 40, rate=rate, watch=lambda update: share() >= 1)
    scores = {}
    for split, count in (("valid", 500), ("test", 500)):
        found = measure(Rememberer(trained, data), split, count)
        scores[split] = round(float(found.right.mean()), 4)
        chance = found.certain.mean() if problem == "adding" else data.baseline(split)
        scores[f"{split} chance"] = round(float(chance), 4)
    return {**result, **scores}


def finished(path: Path) -> list[dict[str, Any]]:
    """The runs in a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def main() -> None:
    """Run what is missing, or write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS], metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=CELLS, default=[*CELLS], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (5)")
    parser.add_argument("--first", type=int, default=11, help="the first seed (11)")
    parser.add_argument("--seconds", type=float, default=20, help="CPU seconds of training for each run (20)")
    parser.add_argument("--parameters", type=int, default=20_000, help="most parameters of a model (20000)")
    parser.add_argument("--runs", type=Path, default=RUNS, help="file of results")
    parser.add_argument(
        "--write", action="store_true", help="write table and picture of the runs; train nothing"
    )
    asked = parser.parse_args()
    torch.set_num_threads(1)
    budget = {"seconds": asked.seconds, "budget": asked.parameters}
    if asked.write:
        page([one for one in finished(asked.runs) if budget.items() <= one.items()], CELLS, PROBLEMS)
        return
    asked.runs.parent.mkdir(parents=True, exist_ok=True)
    for problem in asked.problems:
        for seed in range(asked.first, asked.first + asked.seeds):
            for name in asked.models:
                key = {"problem": problem, "model": name, "seed": seed, **budget}
                if any(key.items() <= one.items() for one in finished(asked.runs)):
                    continue
                found = {
                    **key,
                    **run(name, problem, seed, asked.seconds, asked.parameters),
                    "machine": machine(),
                }
                with asked.runs.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
                scores = (
                    f"{found['valid']:.3f}, beyond {found['test']:.3f} (chance {found['test chance']:.3f})"
                )
                print(f"{problem}, {name}, seed {seed}: {scores}, {found['updates']} updates", flush=True)


if __name__ == "__main__":
    main()
