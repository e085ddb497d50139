"""What every experiment here shares: seeds, confidence, a verdict by rule, one JSON file and one picture.

An experiment says beforehand what would have to be seen if the claim held, as sentences that are true or false
of the numbers it measured. All true: the claim holds; some: it holds in part; none: it does not hold here.
Read next: problems.py, the data; 06_scale.py, the shortest experiment; verdicts.py, which writes docs/claims.md.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from weft.figures.colours import BARS, GRID, INK
from weft.figures.picture import save

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "claims"
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""The 97.5 % point of Student's t for 1, 2, .. degrees of freedom; 2 beyond."""


@dataclass
class Study:
    """One experiment at work.

    Args:
        number: of the claim; claim: in one sentence.
        seeds: how often everything is done anew; quick: a small run that shows that the script works.
        out: where the JSON file and the picture go.
    """

    number: int
    claim: str
    seeds: range
    quick: bool
    out: Path
    seen: list[tuple[str, bool]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.process_time)

    def measured(self, name: str, values: Sequence[float]) -> float:
        """Keep the values of all seeds under a name, print mean and 95 % interval, give the mean."""
        mean, half = interval(values)
        self.numbers[name] = {"mean": rounded(mean), "half": rounded(half), "seeds": len(values)}
        print(f"  {name}: {mean:.4g}" + (f" ± {half:.2g}" if half else ""))
        return mean

    def expect(self, sentence: str, true: bool) -> None:
        """What would be seen if the claim held, and whether it was."""
        self.seen.append((sentence, bool(true)))

    def finish(self, figure: Figure, note: str = "") -> None:
        """Print the verdict, write the JSON file and the picture."""
        true = sum(one for _, one in self.seen)
        verdict = "holds" if true == len(self.seen) else "holds in part" if true else "does not hold here"
        for sentence, one in self.seen:
            print(f"  {'yes' if one else 'NO '}  {sentence}")
        spent = time.process_time() - self.begun
        print(f"Claim {self.number}: {verdict}. ({spent:.0f} CPU seconds{', quick' if self.quick else ''})")
        found = {
            "claim": self.claim,
            "verdict": verdict,
            "expected": [{"sentence": sentence, "seen": one} for sentence, one in self.seen],
            "numbers": self.numbers,
            "note": note,
            "command": " ".join(["python", f"experiments/{Path(sys.argv[0]).name}"]),
            "seeds": list(self.seeds),
            "quick": self.quick,
            "cpu_seconds": round(spent),
        }
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (self.out / f"{self.number:02}.json").write_text(text, "utf-8")
        save(figure, self.out / f"{self.number:02}.png")


def begin(number: int, claim: str, *, seeds: int = 3) -> Study:
    """Read the command line: --quick, --seeds, --out."""
    parser = argparse.ArgumentParser(description=f"Claim {number}: {claim}")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it works")
    parser.add_argument("--seeds", type=int, default=seeds, help="how often all is done anew")
    parser.add_argument("--out", type=Path, help="where JSON and picture go (docs/pictures/claims)")
    asked = parser.parse_args()
    if asked.out is None and asked.quick:
        parser.error("--quick writes no result worth keeping: say with --out where it may go")
    torch.set_num_threads(1)
    print(f"Claim {number}: {claim}")
    seeds = 1 if asked.quick else asked.seeds
    return Study(number, claim, range(1, seeds + 1), asked.quick, asked.out or FOLDER)


def plant(seed: int) -> np.random.Generator:
    """Seed everything; the generator is for the data."""
    random.seed(seed)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half of the 95 % interval by Student's t; 0 where there is one value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    free = len(values) - 1
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / free)
    return mean, (STUDENT[free - 1] if free <= len(STUDENT) else 2.0) * spread / math.sqrt(len(values))


def learn(
    model: nn.Module,
    draw: Callable[[], Any],
    updates: int,
    *,
    rate: float = 3e-3,
    clip: float = 1.0,
    loss: Callable[[Any, int], Any] | None = None,
    watch: Callable[[int], None] | None = None,
) -> float:
    """Train with Adam; gives the mean loss of the last tenth of the updates.

    Args:
        draw: a new batch; loss: of a batch at an update, `model.loss(batch)` unless given.
        watch: called with the number of updates taken, before each.
    """
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    last: list[float] = []
    model.train()
    for update in range(updates):
        if watch is not None:
            watch(update)
            model.train()
        batch = draw()
        value = (model.loss(batch) if loss is None else loss(batch, update)).mean
        adam.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        adam.step()
        if update >= int(0.9 * updates):
            last.append(float(value.detach()))
    model.eval()
    return sum(last) / len(last)


def picture(columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure, and its axes from left to right."""
    figure = Figure(figsize=(4.6 * columns, 3.4), layout="constrained")
    axes = [figure.add_subplot(1, columns, number + 1) for number in range(columns)]
    for one in axes:
        one.grid(color=GRID)
        one.set_axisbelow(True)
        one.tick_params(colors=INK)
        one.set_prop_cycle(color=BARS)
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    return figure, axes


def bars(axes: Axes, names: Sequence[str], values: Sequence[Sequence[float]]) -> None:
    """A bar for each name, with its 95 % interval over seeds."""
    found = [interval(one) for one in values]
    axes.bar(
        names,
        [mean for mean, _ in found],
        yerr=[half for _, half in found],
        color=BARS[0],
        ecolor=INK,
        capsize=3,
    )


def rounded(value: float) -> float:
    """Four figures are enough to print and to compare."""
    return float(f"{value:.4g}")
