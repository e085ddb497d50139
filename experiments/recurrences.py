"""Recurrences at equal budget: every cell on the same tasks, with equal parameters and equally many updates.

    python experiments/recurrences.py                            # what is not measured yet, then the page
    python experiments/recurrences.py --models lstm gru mamba --seeds 3 --tasks language
    python experiments/recurrences.py --write                    # docs/appendix/recurrences.md alone

All data comes with Weft or is drawn, so the command needs no files. The runs of three memory problems are those of
memory.py. Every finished run is one line of JSON in docs/pictures/memory/recurrences.jsonl; a run that is there is not
repeated, so the script can be stopped at any time. Read next: recurrence_tasks.py, the other four tasks; equal.py, the
cells and their sizes; memory.py and texts.py, the same at more length.
"""

import argparse
import math
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import memory
import numpy as np
import torch
from equal import CELLS, FOLDER, finished, machines, measure, parameters, sizes_for
from recurrence_tasks import Language, Task, Translation, Waves, WordEnds

from study import ROOT, interval, learn, plant, shown, table

RUNS, PAGE = FOLDER / "recurrences.jsonl", ROOT / "docs" / "appendix" / "recurrences.md"
TASKS = {"language": Language, "translation": Translation, "tagging": WordEnds, "forecasting": Waves}
BUDGET, UPDATES, WARM_UP, RATE, SEEDS, FIRST = 20_000, 200, 30, 1e-2, 5, 11
SECONDS = 5.0
"""CPU seconds of the memory problems' runs."""
FEWEST, BESIDE, BASELINE, STRONGER = 3, "lstm", "baseline", "stronger baseline"
COUNTED = (BASELINE, STRONGER)
WIDTH = 120
"""Characters of a line of the page, but for tables."""


class Column(NamedTuple):
    """A task of the table: what its score is, what the baseline is, and whether less is better."""

    heading: str
    about: str
    baseline: str
    less: bool = False


COLUMNS = {
    "language": Column(
        "language, bits per letter", "English help texts, validation part", "counts of pairs of letters; stronger: of five", less=True
    ),
    "translation": Column(
        "translation, nats per word",
        "drawn sentences from English to Spanish, 500 others; order, and agreement in gender and number",
        "counts of three Spanish words, without the source",
        less=True,
    ),
    "tagging": Column(
        "tagging, F1",
        "the ends of words in English help texts without spaces, validation part",
        "the more frequent tag of a letter between its neighbours",
    ),
    "forecasting": Column(
        "forecasting, MSE", "the next value of three waves in noise of variance 0.09, 500 others", "the last value; stronger: the best linear function of 24", less=True
    ),
    "parity": Column("parity", "share right, 16 bits", "chance"),
    "recall": Column("recall", "share right, 8 keys", "chance"),
    "copying": Column("copying", "share right, 16 letters of 5", "chance"),
}  # fmt: skip
MEMORY = tuple(name for name in COLUMNS if name not in TASKS)


@cache
def task_of(name: str) -> Task:
    """A task, its data read once."""
    return TASKS[name]()


@cache
def sizes(task: str, model: str) -> tuple[int, int]:
    """Width, and hidden features of the feed-forward networks, for equal parameters."""
    here = task_of(task)
    return sizes_for(lambda width, inner: here.sized(here.model(model, width, inner)), BUDGET)


def rate_at(update: int) -> float:
    """A warm-up, and a cosine to a tenth."""
    return RATE * min(1.0, (update + 1) / WARM_UP) * (0.55 + 0.45 * math.cos(math.pi * update / UPDATES))


def run(key: Mapping[str, Any]) -> dict[str, Any]:
    """Train one model, or count; the score on the validation part."""
    here, name = task_of(key["task"]), key["model"]
    if name == BASELINE:
        return {"score": round(here.baseline(), 4)}
    if name == STRONGER:
        assert isinstance(here, Language | Waves)
        return {"score": round(here.stronger(), 4)}
    width, inner = sizes(key["task"], name)
    chance = plant(key["seed"])
    model = here.model(name, width, inner)
    begun = time.process_time()
    learn(model, partial(here.draw, chance), UPDATES, rate=rate_at)
    spent = round(time.process_time() - begun, 2)
    counted = parameters(here.sized(model))
    score = round(here.score(model), 4)
    return {"width": width, "inner": inner, "parameters": counted, "cpu_seconds": spent, "score": score}


def remembered() -> list[dict[str, Any]]:
    """The runs of memory.py with this budget, and chance as their baseline."""
    budget = {"seconds": SECONDS, "budget": BUDGET}
    found = [
        one for one in finished(memory.RUNS) if one["problem"] in MEMORY and budget.items() <= one.items()
    ]
    runs = [{**one, "task": one["problem"], "score": one["valid"]} for one in found]
    return runs + [
        {**one, "model": BASELINE, "score": one["valid chance"]} for one in runs if one["model"] == BESIDE
    ]


def said(found: Mapping[str, Any]) -> str:
    """A finished run."""
    seed = f", seed {found['seed']}" if "seed" in found else ""
    return f"{found['task']}, {found['model']}{seed}: {found['score']:.4g}"


HEAD = """# Recurrences at equal budget

Which recurrence learns most from the same number of parameters and the same updates? Every cell is trained
on the same tasks; all data comes with Weft or is drawn. One command measures what is missing and writes
this page:

```console
$ python experiments/recurrences.py
```

**Language, translation, tagging and forecasting**: every model has {fewest:,} to {most:,} parameters (for
language and translation: of the decoder; beside it embeddings of 32 features, and for translation the same
encoder, a Transformer of one layer) and {updates} updates with Adam: {warm_up} of warm-up, then a cosine
from {rate:g} to a tenth. Everyone sees the same batches. **Memory problems**: at most {budget:,} parameters
and {seconds:g} CPU seconds, as in [What each cell can remember](memory.md). A model is one block around a
cell (norm, short convolution, cell, feed-forward network), or two Transformer layers; a tagger reads in
both directions. No learning rate was tuned, and all cells have the same one. Processor: {machine}; one
thread, shared with other work; float32.

± is the 95 % interval of the mean over seeds (Student's t). **Bold**: its paired difference from `lstm`
excludes 0 in its favour; *italics*: against it; otherwise no verdict. Verdicts are by single intervals, not
corrected for their number (as Holm's method does): where nothing differs, one in twenty still gets a verdict.
These budgets are small: a ranking holds only for them. "CPU s" is the mean time of a training
in the first four columns; other work on the machine makes it longer, never the scores different. The runs
are in `docs/pictures/memory/recurrences.jsonl`, those of the memory problems in `runs.jsonl` beside it.

{tasks}

"""


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The table of what was measured with at least three seeds."""
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for one in runs:
        scores.setdefault((one["model"], one["task"]), {})[one.get("seed", 0)] = one["score"]
    counted = {
        key: float(np.mean(list(found.values()))) for key, found in scores.items() if key[0] in COUNTED
    }
    scores = {key: found for key, found in scores.items() if len(found) >= FEWEST and key[0] not in COUNTED}
    tasks = [task for task in COLUMNS if any(key[1] == task for key in scores)]
    names = [name for name in CELLS if any(key[0] == name for key in scores)]
    assert tasks, "no model has runs with three seeds; train first"
    heads = [COLUMNS[task].heading for task in tasks]
    rows = []
    for name in COUNTED:
        shown_of = [f"{counted[name, task]:.4g}" if (name, task) in counted else "" for task in tasks]
        rows += [[name, *shown_of, "", ""]] * any(shown_of)
    for name in names:
        seeds = sorted({len(scores[name, task]) for task in tasks if (name, task) in scores})
        cells = [_cell(scores, name, task) for task in tasks]
        spent = [one["cpu_seconds"] for one in runs if one["model"] == name and "cpu_seconds" in one]
        many = " to ".join(map(str, seeds[:1] + seeds[1:][-1:]))
        rows.append([name, *cells, many, f"{np.mean(spent):.1f}" if spent else ""])
    lines = table(["cell", *heads, "seeds", "CPU s"], rows)
    return wrapped(_head(runs, tasks)) + "\n".join(lines) + "\n" + wrapped(_rest(scores))


def wrapped(text: str) -> str:
    """Paragraphs and lists of Markdown with lines of at most 120 characters; code stays as it is."""
    blocks = []
    for block in text.split("\n\n"):
        items = [block] if block.startswith("```") else re.split(r"\n(?=- )", block)
        blocks.append("\n".join(one if one.startswith("```") else _filled(one) for one in items))
    return "\n\n".join(blocks)


def _filled(text: str) -> str:
    """One paragraph or item; the line ends around it stay."""
    inner = text.strip("\n")
    before, after = text[: len(text) - len(text.lstrip("\n"))], text[len(text.rstrip("\n")) :] * bool(inner)
    indent = "  " * inner.startswith("- ")
    filled = textwrap.fill(
        inner, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return f"{before}{filled}{after}"


def _head(runs: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> str:
    sizes = [one["parameters"] for one in runs if one["task"] in TASKS and one["model"] not in COUNTED]
    told = [(COLUMNS[task], task) for task in tasks]
    about = [f"- **{one.heading}**: {one.about}. Baseline: {one.baseline}." for one, _ in told]
    return HEAD.format(
        fewest=min(sizes, default=BUDGET),
        most=max(sizes, default=BUDGET),
        updates=UPDATES,
        warm_up=WARM_UP,
        rate=RATE,
        budget=BUDGET,
        seconds=SECONDS,
        machine=machines([one for one in runs if one["model"] not in COUNTED], "task"),
        tasks="\n".join(about),
    )


def _rest(scores: Mapping[tuple[str, str], Mapping[int, float]]) -> str:
    """What has too few seeds."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for task in COLUMNS:
        names = tuple(f"`{name}`" for name in CELLS if (name, task) not in scores)
        lacking.setdefault(names, []).append(task)
    told = [f"{', '.join(tasks)}: {', '.join(names)}" for names, tasks in lacking.items() if names]
    return f"\nNot measured with at least {FEWEST} seeds yet: {'; '.join(told)}.\n" if told else ""


def _cell(scores: Mapping[tuple[str, str], Mapping[int, float]], name: str, task: str) -> str:
    own, other = scores.get((name, task)), scores.get((BESIDE, task), {})
    if own is None:
        return ""
    text = shown(*interval(np.array(list(own.values()))))
    both = sorted(own.keys() & other.keys())
    if name == BESIDE or len(both) < FEWEST:
        return text
    mean, half = interval(np.array([own[seed] - other[seed] for seed in both]))
    if abs(mean) <= half:
        return text
    return f"**{text}**" if (mean < 0) == COLUMNS[task].less else f"*{text}*"


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=[*CELLS], default=[*CELLS], metavar="NAME")
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS], default=[*TASKS], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"number of seeds ({SEEDS})")
    parser.add_argument("--runs", type=Path, default=RUNS, help="file of results")
    parser.add_argument("--write", action="store_true", help="write the page of the runs; train nothing")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    budget = {"updates": UPDATES, "budget": BUDGET}
    if not asked.write:
        keys = [{"task": task, "model": BASELINE, **budget} for task in asked.tasks]
        keys += [
            {"task": task, "model": STRONGER, **budget}
            for task in asked.tasks
            if hasattr(TASKS[task], "stronger")
        ]
        keys += [
            {"task": task, "model": name, "seed": seed, **budget}
            for seed in range(FIRST, FIRST + asked.seeds)
            for name in asked.models
            for task in asked.tasks
        ]
        measure(asked.runs, keys, run, said)
    found = [one for one in finished(asked.runs) if budget.items() <= one.items()]
    PAGE.write_text(page([*found, *remembered()]), "utf-8")
    print(f"Written to {PAGE}")


if __name__ == "__main__":
    main()
