"""What every experiment shares: parts declared before the run, paired differences, verdicts, a JSON file and a picture.

A claim consists of parts. A part says that one quantity is larger than another; it is declared before anything is
measured. Its p-value comes from the differences, paired by seed (Student's t), and is corrected for the tries of its
claim and, by Holm, for all parts of docs/claims.md. So a verdict depends on all claims: a JSON file has what was
measured, and `judged` gives the verdicts. A part that is a theorem is checked numerically instead.
Read next: problems.py, the data; 06_scale.py, the shortest experiment; verdicts.py, which writes docs/claims.md.
"""

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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
from weft.metrics.intervals import holm, student_quantile, student_tail
from weft.nn.kernels import choice

ROOT = Path(__file__).resolve().parent.parent
DRAFTS, PUBLISHED = ROOT / "build" / "claims", ROOT / "docs" / "pictures" / "claims"
FEWEST_SEEDS, FIRST_SEED, CHOOSING = 5, 11, (1, 2)
"""Seeds below 11 are for writing an experiment and choosing learning rates; its published result comes from seeds
that nobody looked at."""

Name = TypeVar("Name", str, int)

LEVEL = 0.05
"""The chance that any part of docs/claims.md is judged wrongly."""

NOT_SHOWN = "not shown at this scale"
VERDICTS = ("contradicted", NOT_SHOWN, "undecided", "holds", "theorem")
"""A claim has the first of these that one of its parts has; one of theorems alone holds."""

SERIES = cycler(
    color=BARS,
    marker=("o", "s", "^", "D", "v", "P"),
    linestyle=("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))),
)
"""Colours, markers and dashes of the series; each alone tells them apart."""


class Part(NamedTuple):
    """One statement of a claim: the first quantity of a comparison is larger than the second.

    says: the statement; unit: of the difference; least: the difference that it must exceed, below zero where
    the statement allows a small loss; theorem: whether it can be proved, so that it is only checked; beyond: what
    the claim is about and these runs do not have, so that they cannot contradict it.
    """

    says: str
    unit: str = ""
    least: float = 0.0
    theorem: bool = False
    beyond: str = ""


@dataclass
class Study:
    """One experiment in progress: `repeat`, then `compare` or `check` each part, then `finish`.

    tries: how many designs of this experiment have been run for a verdict, this one included.
    """

    number: int
    claim: str
    parts: Mapping[str, Part]
    seeds: range
    quick: bool
    out: Path
    tries: int = 1
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    begun: float = field(default_factory=time.process_time)

    def best_rates(
        self,
        what: str,
        names: Iterable[Name],
        rates: Sequence[float],
        error: Callable[[Name, float, int], float],
    ) -> dict[Name, float]:
        """For each name the learning rate with the lowest mean `error(name, rate, seed)`; no verdict uses its seeds."""
        best: dict[Name, float] = {}
        for name in names:
            means = {rate: float(np.mean([error(name, rate, seed) for seed in CHOOSING])) for rate in rates}
            best[name] = min(rates, key=lambda rate: np.nan_to_num(means[rate], nan=math.inf))
            tried = ", ".join(f"{rate:g}: {mean:.4g}" for rate, mean in means.items())
            print(f"  {what}, {name}, error by rate: {tried}", flush=True)
        self.numbers[f"learning rates, {what}"] = ", ".join(f"{name} {rate:g}" for name, rate in best.items())
        return best

    def repeat(self, once: Callable[[int, bool], Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Call `once(seed, quick)` for each seed; its results by name, stacked as [seeds, ...]."""
        results = []
        for seed in self.seeds:
            plant(seed)
            results.append(once(seed, self.quick))
            print(f"  seed {seed}: {time.process_time() - self.begun:.0f} CPU seconds so far", flush=True)
        return {name: np.array([one[name] for one in results], float) for name in results[0]}

    def compare(self, name: str, larger: ArrayLike, smaller: ArrayLike) -> None:
        """Keep the values of all seeds of a part's two quantities."""
        pairs = np.broadcast_arrays(np.asarray(larger, float), np.asarray(smaller, float))
        means = [rounded(float(one.mean())) for one in pairs]
        self._keep(name, means=means, differences=[rounded(float(one), 6) for one in pairs[0] - pairs[1]])

    def check(self, name: str, error: float, tolerance: float) -> None:
        """Check a theorem: the largest error that was met, and what rounding explains."""
        assert error <= tolerance, f"{self.parts[name].says} The program has a bug: {error} > {tolerance}"
        self._keep(name, error=rounded(error), tolerance=tolerance)

    def measured(self, name: str, values: ArrayLike) -> None:
        """Report mean and interval of another quantity, which no verdict depends on."""
        mean, half = interval(np.asarray(values, float))
        self.numbers[name] = shown(mean, half)

    def finish(self, figure: Figure) -> None:
        """Print the verdicts; write the JSON file and the picture."""
        assert self.found.keys() == self.parts.keys(), "every declared part needs a result"
        spent = round(time.process_time() - self.begun)
        found = {
            "claim": self.claim,
            "parts": list(self.found.values()),
            "numbers": self.numbers,
            "command": f"python experiments/{Path(sys.argv[0]).name}",
            "seeds": list(self.seeds),
            "tries": self.tries,
            "quick": self.quick,
            "cpu_seconds": spent,
            "machine": machine(),
        }
        one = judged(published() | {self.number: found})[self.number]
        for part in one["parts"]:
            p = f", corrected p {probability(part)}" if part["p"] is not None else ""
            print(f"  {part['verdict']}: {part['says']} {result(part)}{p}")
        for name, value in self.numbers.items():
            print(f"  {name}: {value}")
        quick = ", quick" if self.quick else ""
        print(f"Claim {self.number}: {one['verdict']}. ({spent} CPU seconds{quick})")
        self.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (self.out / f"{self.number:02}.json").write_text(text, "utf-8")
        for suffix in ("png", "svg"):
            save(figure, self.out / f"{self.number:02}.{suffix}")
        print(f"Written to {self.out}")

    def _keep(self, name: str, **numbers: Any) -> None:
        assert name not in self.found, f"{name}: judged twice"
        self.found[name] = {**self.parts[name]._asdict(), **numbers}


def begin(
    doc: str | None, parts: Mapping[str, Part], *, seeds: int = 6, first: int = FIRST_SEED, tries: int = 1
) -> Study:
    """Read number and claim from the script's docstring, the rest from the command line."""
    title, claim = (doc or "").split("\n")[0].split(": ", 1)
    parser = argparse.ArgumentParser(description=f"{title}: {claim}")
    parser.add_argument("--quick", action="store_true", help="seed 1 and few updates, to see that it runs")
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
    taken = range(1, 2) if asked.quick else range(asked.first, asked.first + asked.seeds)
    out = PUBLISHED if asked.publish else asked.out
    return Study(int(title.split()[-1]), claim, parts, taken, asked.quick, out, tries)


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


def p_value(differences: Sequence[float], least: float) -> float:
    """How probable so large a distance of the mean from `least` is by chance: Student's t, two-sided."""
    count = len(differences)
    if count < FEWEST_SEEDS:
        return 1.0
    distance, spread = abs(float(np.mean(differences)) - least), float(np.std(differences, ddof=1))
    if spread == 0:
        return float(distance == 0)
    return student_tail(distance / spread * math.sqrt(count), count - 1)


def published() -> dict[int, dict[str, Any]]:
    """What docs/pictures/claims has of each claim."""
    return {int(path.stem): json.loads(path.read_text("utf-8")) for path in sorted(PUBLISHED.glob("*.json"))}


def judged(found: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """The same claims with the verdicts; all their measured parts are one family for Holm's correction."""
    raw = [
        one["tries"] * p_value(part["differences"], part["least"])
        for one in found.values()
        for part in one["parts"]
        if not part["theorem"]
    ]
    corrected = iter(holm(raw))
    claims = {}
    for number, one in found.items():
        parts = [_judged(part, None if part["theorem"] else next(corrected)) for part in one["parts"]]
        claims[number] = {**one, "parts": parts, "verdict": overall(part["verdict"] for part in parts)}
    return claims


def overall(verdicts: Iterable[str]) -> str:
    """The verdict on a claim, which says that all its parts are true."""
    return min((*verdicts, "holds"), key=VERDICTS.index)


def _judged(part: Mapping[str, Any], p: float | None) -> dict[str, Any]:
    if p is None:
        verdict = "theorem"
    elif p < LEVEL and np.mean(part["differences"]) > part["least"]:
        verdict = "holds"
    elif part["beyond"]:
        verdict = NOT_SHOWN
    else:
        verdict = "contradicted" if p < LEVEL else "undecided"
    return {**part, "p": p, "verdict": verdict}


def result(part: Mapping[str, Any]) -> str:
    """The numbers behind a part's verdict."""
    if part["theorem"]:
        return f"largest error {part['error']:.1g}"
    larger, smaller = part["means"]
    least = f", limit {part['least']:g}" if part["least"] else ""
    difference = shown(*interval(np.array(part["differences"])))
    return f"{difference} {part['unit']} ({larger:.4g} against {smaller:.4g}{least})"


def probability(part: Mapping[str, Any]) -> str:
    """A part's p-value, corrected for all claims."""
    p = part["p"]
    return "" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"


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
        choice.processor()["model name"],
        f"{os.cpu_count()} cores",
        torch.backends.cpu.get_cpu_capability(),
    ]
    return ", ".join([*parts, f"torch {torch.__version__}"])


def rounded(value: float, figures: int = 4) -> float:
    """To so many significant figures; four are enough to print."""
    return float(f"{value:.{figures}g}")
