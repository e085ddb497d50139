"""What every experiment shares: parts declared before the run, paired differences, verdicts, a JSON file and a picture.

A claim consists of parts. A part says that one quantity is larger than another; it is declared before anything is
measured. Its verdict follows from the differences, paired by seed: it holds if the 95 % interval of their mean
(Student's t) lies above zero, is contradicted if the interval lies below zero, and is undecided otherwise or with
fewer than five seeds. A part that is a theorem is checked numerically instead.
Read next: problems.py, the data; 06_scale.py, the shortest experiment; verdicts.py, which writes docs/claims.md.
"""

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike
from torch import nn

from weft.figures.colours import BARS, GRID, INK
from weft.figures.picture import save
from weft.metrics.intervals import student_quantile
from weft.nn.kernels import rules

ROOT = Path(__file__).resolve().parent.parent
DRAFTS, PUBLISHED = ROOT / "build" / "claims", ROOT / "docs" / "pictures" / "claims"
FEWEST_SEEDS, FIRST_SEED = 5, 11
"""Seeds below 11 are for writing an experiment; its published result comes from seeds that nobody looked at."""

SERIES = cycler(
    color=BARS,
    marker=("o", "s", "^", "D", "v", "P"),
    linestyle=("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))),
)
"""Colours, markers and dashes of the series; each alone tells them apart."""


class Part(NamedTuple):
    """One statement of a claim: the first quantity of a comparison is larger than the second.

    says: the statement; unit: of the difference; least: the difference that it must exceed, below zero where
    the statement allows a small loss; theorem: whether it can be proved, so that it is only checked.
    """

    says: str
    unit: str = ""
    least: float = 0.0
    theorem: bool = False


@dataclass
class Study:
    """One experiment in progress: `repeat`, then `compare` or `check` each part, then `finish`."""

    number: int
    claim: str
    parts: Mapping[str, Part]
    seeds: range
    quick: bool
    out: Path
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    begun: float = field(default_factory=time.process_time)

    def repeat(self, once: Callable[[int, bool], Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Call `once(seed, quick)` for each seed; its results by name, stacked as [seeds, ...]."""
        results = []
        for seed in self.seeds:
            plant(seed)
            results.append(once(seed, self.quick))
            print(f"  seed {seed}: {time.process_time() - self.begun:.0f} CPU seconds so far", flush=True)
        return {name: np.array([one[name] for one in results], float) for name in results[0]}

    def compare(self, name: str, larger: ArrayLike, smaller: ArrayLike) -> None:
        """Judge a part by the values of all seeds of the two quantities."""
        pairs = np.broadcast_arrays(np.asarray(larger, float), np.asarray(smaller, float))
        mean, half = interval(pairs[0] - pairs[1])
        verdict = judged(mean, half, self.parts[name].least) if len(pairs[0]) >= FEWEST_SEEDS else "undecided"
        means = [rounded(float(one.mean())) for one in pairs]
        self._keep(name, verdict, means=means, difference=rounded(mean), half=rounded(half))

    def check(self, name: str, error: float, tolerance: float) -> None:
        """Check a theorem: the largest error that was met, and what rounding explains."""
        assert error <= tolerance, f"{self.parts[name].says} The program has a bug: {error} > {tolerance}"
        self._keep(name, "theorem", error=rounded(error), tolerance=tolerance)

    def measured(self, name: str, values: ArrayLike) -> None:
        """Report mean and interval of another quantity, which no verdict depends on."""
        mean, half = interval(np.asarray(values, float))
        self.numbers[name] = shown(mean, half)

    def finish(self, figure: Figure) -> None:
        """Print the verdicts; write the JSON file and the picture."""
        assert self.found.keys() == self.parts.keys(), "every declared part needs a result"
        verdict = overall([one["verdict"] for one in self.found.values()])
        for one in self.found.values():
            print(f"  {one['verdict']:<12} {one['says']} {result(one)}")
        for name, value in self.numbers.items():
            print(f"  {name}: {value}")
        spent = round(time.process_time() - self.begun)
        print(f"Claim {self.number}: {verdict}. ({spent} CPU seconds{', quick' if self.quick else ''})")
        found = {
            "claim": self.claim,
            "verdict": verdict,
            "parts": list(self.found.values()),
            "numbers": self.numbers,
            "command": f"python experiments/{Path(sys.argv[0]).name}",
            "seeds": list(self.seeds),
            "quick": self.quick,
            "cpu_seconds": spent,
            "machine": machine(),
        }
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (self.out / f"{self.number:02}.json").write_text(text, "utf-8")
        for suffix in ("png", "svg"):
            save(figure, self.out / f"{self.number:02}.{suffix}")
        print(f"Written to {self.out}")

    def _keep(self, name: str, verdict: str, **numbers: Any) -> None:
        assert name not in self.found, f"{name}: judged twice"
        self.found[name] = {**self.parts[name]._asdict(), "verdict": verdict, **numbers}


def begin(doc: str | None, parts: Mapping[str, Part], *, seeds: int = 6, first: int = FIRST_SEED) -> Study:
    """Read number and claim from the script's docstring, the rest from the command line."""
    title, claim = (doc or "").split("\n")[0].split(": ", 1)
    parser = argparse.ArgumentParser(description=f"{title}: {claim}")
    parser.add_argument("--quick", action="store_true", help="one seed and few updates, to see that it runs")
    parser.add_argument("--seeds", type=int, default=seeds, help=f"number of seeds ({seeds})")
    parser.add_argument("--first", type=int, default=first, help=f"the first seed ({first})")
    parser.add_argument(
        "--out", type=Path, default=DRAFTS, help="folder of JSON file and picture (build/claims)"
    )
    parser.add_argument("--publish", action="store_true", help="write to docs/pictures/claims instead")
    asked = parser.parse_args()
    if asked.seeds < FEWEST_SEEDS:
        parser.error(f"--seeds: expected at least {FEWEST_SEEDS}, got {asked.seeds}")
    if asked.publish and asked.quick:
        parser.error("--publish: a quick run has no result to publish; leave out --quick")
    torch.set_num_threads(1)
    print(f"{title}: {claim}")
    taken = range(asked.first, asked.first + (1 if asked.quick else asked.seeds))
    out = PUBLISHED if asked.publish else asked.out
    return Study(int(title.split()[-1]), claim, parts, taken, asked.quick, out)


def plant(seed: int) -> np.random.Generator:
    """Seed everything; the generator is for the data."""
    random.seed(seed)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half of its 95 % interval by Student's t; NaN where there is only one value."""
    if len(values) < 2:
        return float(values.mean()), math.nan
    half = student_quantile(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()), half


def judged(mean: float, half: float, least: float) -> str:
    """The verdict on a part, from the interval of its difference."""
    if mean - half > least:
        return "holds"
    return "contradicted" if mean + half < least else "undecided"


def overall(verdicts: Collection[str]) -> str:
    """The verdict on a claim, which says that all its parts are true."""
    if "contradicted" in verdicts:
        return "contradicted"
    return "undecided" if "undecided" in verdicts else "holds"


def result(part: Mapping[str, Any]) -> str:
    """The numbers behind a part's verdict."""
    if part["theorem"]:
        return f"largest error {part['error']:.1g}"
    larger, smaller = part["means"]
    least = f", limit {part['least']:g}" if part["least"] else ""
    difference = shown(part["difference"], part["half"])
    return f"{difference} {part['unit']} ({larger:.4g} against {smaller:.4g}{least})"


def shown(mean: float, half: float) -> str:
    """A mean with its interval, to as many decimals as the interval has two significant figures."""
    if not half > 0:  # NaN: one seed; 0: no spread between seeds
        return f"{mean:.4g}" + " ± 0" * (half == 0)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table of Markdown."""
    first, *others = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return [first, "|---" * len(head) + "|", *others]


def learn(
    model: nn.Module,
    draw: Callable[[], Any],
    updates: int,
    *,
    rate: float | Callable[[int], float] = 3e-3,
    loss: Callable[[Any, int], Any] | None = None,
    watch: Callable[[int], Any] | None = None,
) -> nn.Module:
    """Train with Adam, gradients clipped at norm 1.

    Args:
        draw: a new batch; rate: the learning rate, also of an update; loss: of a batch at an update, `model.loss(batch)` unless given.
        watch: called with the number of updates so far, before each; training ends early if it gives True.
    """
    adam = torch.optim.Adam(model.parameters(), lr=0.0 if callable(rate) else rate)
    for update in range(updates):
        if watch is not None and watch(update):
            break
        if callable(rate):
            adam.param_groups[0]["lr"] = rate(update)
        model.train()
        batch = draw()
        value = (model.loss(batch) if loss is None else loss(batch, update)).mean  # type: ignore[operator]
        adam.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return model.eval()


def picture(columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure, and its axes from left to right."""
    figure = Figure(figsize=(4.8 * columns, 3.5), layout=ConstrainedLayoutEngine(wspace=0.06))
    axes = [figure.add_subplot(1, columns, number + 1) for number in range(columns)]
    for one in axes:
        one.grid(color=GRID)
        one.set_axisbelow(True)
        one.tick_params(colors=INK, labelsize=9)
        one.set_prop_cycle(SERIES)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def curves(axes: Axes, x: Sequence[float], found: Mapping[str, np.ndarray], *, every: int = 1) -> None:
    """A line for each name through the means of [seeds, x], with its 95 % interval as a band."""
    for name, values in found.items():
        mean, half = np.array([interval(column) for column in values.T]).T
        (line,) = axes.plot(x, mean, label=name, markersize=5, markevery=every)
        axes.fill_between(x, mean - half, mean + half, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.legend(fontsize=9)


def points(axes: Axes, found: Mapping[str, np.ndarray]) -> None:
    """A mean with its 95 % interval for each name, and a small dot for each seed."""
    for place, (values, style) in enumerate(zip(found.values(), SERIES, strict=False)):
        mean, half = interval(values)
        axes.plot([place + 0.2] * len(values), values, ".", color=style["color"], alpha=0.5, markersize=5)
        axes.errorbar(place, mean, half, color=style["color"], marker=style["marker"], capsize=4)
    axes.set_xticks(range(len(found)), list(found))
    axes.set_xlim(-0.5, len(found) - 0.4)


def level(axes: Axes, value: float, label: str) -> None:
    """A dotted line across, named in the legend."""
    axes.axhline(value, color=INK, linewidth=1, linestyle=":", label=label)
    axes.legend(fontsize=9)


def machine() -> str:
    """The processor, its cores, and the widest vectors that torch uses."""
    parts = [
        rules.processor()["model name"],
        f"{os.cpu_count()} cores",
        torch.backends.cpu.get_cpu_capability(),
    ]
    return ", ".join([*parts, f"torch {torch.__version__}"])


def rounded(value: float) -> float:
    """Four significant figures are enough to print and to compare."""
    return float(f"{value:.4g}")
