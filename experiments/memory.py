"""What each cell can remember: all cells and a Transformer on eight problems, with equal parameters and CPU seconds.

    python experiments/memory.py                              # everything that is not measured yet
    python experiments/memory.py --problems parity recall --seeds 3 --seconds 5
    python experiments/memory.py --write                      # docs/appendix/memory.md and its picture

Every finished run is one line of JSON in docs/pictures/memory/runs.jsonl; a run that is there is not repeated, so the
script can be stopped at any time. Read next: memory_page.py, which writes table and picture; equal.py, the cells.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from equal import (
    CELLS,
    FOLDER,
    HEADS,
    arguments,
    block,
    finished,
    machines,
    measure,
    parameters,
    state_size,
    train,
    width_for,
)
from memory_page import page

from study import learn, plant
from weft.models import Labeller
from weft.nn import RecurrentEncoder, TransformerEncoder
from weft.tasks import Rememberer
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.predictor import measure as scores_of
from weft.tasks.memory.task import MemoryModel

RUNS = FOLDER / "runs.jsonl"
ROWS, RATE = 32, 1e-2
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


def model(name: str, data: MemoryData, width: int) -> Labeller:
    """One block around a cell; or a Transformer of two, since one cannot find a value by the key before it."""
    if name == "transformer":
        encoder: Any = partial(
            TransformerEncoder, size=width, num_layers=2, num_heads=HEADS, inner=2 * width, dropout=0.0
        )
        encoder = partial(encoder, positions="rotary", norm_kind="rms", activation="geglu")
    else:
        encoder = partial(RecurrentEncoder, sizes=(width,), cell=block(name, width), last_norm="rms")
    return MemoryModel(encoder=encoder, embedding=width).build(data)


def run(key: Mapping[str, Any]) -> dict[str, Any]:
    """Train one model for its CPU seconds; its scores at the length of training and beyond."""
    problem, name, seed = key["problem"], key["model"], key["seed"]
    plant(seed)
    data = MemoryData(**{**vars(PROBLEMS[problem]), "seed": seed, "batch_rows": 100})
    width = width_for(partial(model, name, data), key["budget"])
    learn(
        model(name, data, width), lambda: data.batch("train", torch.arange(2).numpy()), 1
    )  # what is done once
    plant(seed)
    trained = model(name, data, width)
    batches: Iterator[Any] = (
        data.batch("train", torch.arange(ROWS).numpy() + at * ROWS) for at in range(1 << 40)
    )
    updates = train(trained, lambda: next(batches), key["seconds"], RATE)
    result: dict[str, Any] = {
        "width": width,
        "parameters": parameters(trained),
        "state": state_size(trained),
        "updates": updates,
    }
    for split, count in (("valid", 500), ("test", 500)):
        found = scores_of(Rememberer(trained, data), split, count)
        result[split] = round(float(found.right(found.answers).mean()), 4)
        result[f"{split} chance"] = round(float(found.right(found.guess).mean()), 4)
    return result


def said(found: Mapping[str, Any]) -> str:
    """A finished run."""
    scores = f"{found['valid']:.3f}, beyond {found['test']:.3f} (chance {found['test chance']:.3f})"
    return f"{found['problem']}, {found['model']}, seed {found['seed']}: {scores}, {found['updates']} updates"


def main() -> None:
    """Run what is missing, or write the page."""
    parser = arguments(__doc__, RUNS, models=[*CELLS], seconds=20, budget=20_000)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS], metavar="NAME")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    budget = {"seconds": asked.seconds, "budget": asked.parameters}
    if asked.write:
        runs = [one for one in finished(asked.runs) if budget.items() <= one.items()]
        page(runs, CELLS, PROBLEMS, machines(runs, "problem"))
        return
    keys = [
        {"problem": problem, "model": name, "seed": seed, **budget}
        for seed in range(asked.first, asked.first + asked.seeds)
        for problem in asked.problems
        for name in asked.models
    ]
    measure(asked.runs, keys, run, said)


if __name__ == "__main__":
    main()
