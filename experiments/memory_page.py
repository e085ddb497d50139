"""Table, verdicts and picture of the runs of memory.py: docs/appendix/memory.md. Read next: memory.py.

A verdict follows from the 95 % interval of the mean over seeds (Student's t) and needs three of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study import ROOT, interval, shown, table
from weft.figures.colours import BARS, GRID, INK
from weft.figures.picture import save

PAGE, PICTURE = ROOT / "docs" / "appendix" / "memory.md", ROOT / "docs" / "pictures" / "memory" / "scores"
COLUMNS = 4  # panels of the picture, side by side
TRACKING, SOLVED, FEWEST = ("parity", "three cups", "five cups"), 0.9, 3
PREDICTED = {True: "yes", False: "no", None: "open"}
COLOURS = dict(zip(PREDICTED.values(), (BARS[0], BARS[1], INK), strict=True))
HEAD = """# What each cell can remember

Written by `python experiments/memory.py --write --seconds {seconds:g}`; the runs are in `docs/pictures/memory/runs.jsonl`.

**Measured so far:** {measured}. Every run had {seconds:g} CPU seconds of one thread and at most {budget:,} parameters; widths are
found by bisection. Processor: {machine}, shared with other work. All runs have one learning rate (0.01, cosine over the CPU seconds) and
batches of 32. Each cell is in one block: norm, convolution over 4 steps, the cell, a feed-forward network; the Transformer has two
layers with rotary positions and is bidirectional.

These budgets are small. A low score says that nothing was learnt *in {seconds:g} seconds*, not that it cannot be.

Problems, with the training length (and the longer test length): {lengths}.
`three cups` and `five cups` ask where a ball is after each swap of two cups; `parity` is the same with two cups.

![Scores of every cell](../pictures/memory/scores.png)

Filled: the training length. Hollow: the longer length. Bars are 95 % intervals over seeds, dotted lines the score without memory.
The colour shows whether theory predicts that the cell can track a state, as in parity, at every length (below).

## Scores

Share of right answers at the training length → at the longer length, with 95 % intervals over seeds. State: numbers that a step
reads from the previous one, including the convolution. Eigenvalues: of the matrix that maps a state to the next.

"""
THEORY = """
## What theory predicts

A linear recurrence whose eigenvalues are all between 0 and 1, or do not depend on the input, cannot compute parity at every length,
with any number of layers (Sarrof, Veitsman & Hahn 2024; Grazzi et al. 2025). Neither can it follow the ball, since permutations
contain parity. A nonlinear step can. So can a delta rule with `negative: true`: its matrix I - β k kᵀ with β up to 2 has an
eigenvalue down to -1, so a swap of two cups is one step, the reflection along the difference of their places (Grazzi et al. 2025,
section 4); three and five cups need such a matrix, since swaps do not commute and numbers do (Merrill, Petty & Sabharwal 2024).
Attention of fixed depth computes neither reliably at every length (Hahn 2020). So the test uses the longer length, and solved
means {solved:g} of the answers:

- predicted yes: **agrees** if the interval lies above {solved:g}; below it, **not learnt**, because theory only says what is possible;
- predicted no: **agrees** if the interval lies below {solved:g}, **contradicted** if above;
- an interval around {solved:g}, or fewer than {fewest} seeds: **undecided**.

Verdicts are by single 95 % intervals, not corrected for their number (as Holm's method does): where nothing differs, one in twenty still
gets a verdict.

"""


def values(runs: Sequence[Mapping[str, Any]], problem: str, name: str, split: str) -> np.ndarray:
    """Scores of the seeds."""
    return np.array([one[split] for one in runs if (one["problem"], one["model"]) == (problem, name)])


def verdict(scores: np.ndarray, tracks: bool | None) -> str:
    """Prediction and measurement beyond the length of training; empty without scores."""
    if not len(scores):
        return ""
    mean, half = interval(scores)
    if len(scores) < FEWEST or mean - half <= SOLVED <= mean + half:
        return "undecided"
    solved = mean > SOLVED
    if tracks is None:
        return "solved" if solved else "not solved"
    if tracks:
        return "agrees" if solved else "not learnt"
    return "contradicted" if solved else "agrees"


def by_sign(runs: Sequence[Mapping[str, Any]], problems: Sequence[str]) -> str:
    """What `negative: true` adds beyond the length of training, in sentences; empty with fewer than three seeds."""
    lines = []
    for name in ("delta", "gated_delta"):
        for problem in problems:
            without, scores = (
                {
                    one["seed"]: one["test"]
                    for one in runs
                    if (one["model"], one["problem"]) == (kind, problem)
                }
                for kind in (name, f"{name}, negative")
            )
            both = sorted(without.keys() & scores.keys())
            if len(both) >= FEWEST:
                differences = np.array([scores[seed] - without[seed] for seed in both])
                lines.append(f"- `{name}`, {problem}: {_judged(differences)}")
    head = "The effect of a negative eigenvalue: the share of right answers at the longer length that `negative: true` adds,\n"
    return _listed(head + "paired by seed; theory predicts more:", lines)


def _listed(head: str, lines: Sequence[str]) -> str:
    """A list below its head, as one sentence; empty without lines."""
    return f"\n{head}\n\n" + ";\n".join(lines) + ".\n" if lines else ""


def _score(runs: Sequence[Mapping[str, Any]], problem: str, name: str) -> str:
    pair = [values(runs, problem, name, split) for split in ("valid", "test")]
    return " → ".join(shown(*interval(one)) for one in pair) if len(pair[0]) else ""


def _state(run: Mapping[str, Any]) -> str:
    return "grows" if run["state"] is None else f"{run['state']:,}"


def tables(runs: Sequence[Mapping[str, Any]], cells: Mapping[str, Any], problems: Sequence[str]) -> str:
    """Both tables."""
    scores, verdicts = [], []
    tracked = [problem for problem in problems if problem in TRACKING]
    for name, known in cells.items():
        one = next(one for one in runs if one["model"] == name)
        found = [_score(runs, problem, name) for problem in problems]
        scores.append([name, known.eigenvalues, _state(one), *found])
        said = [verdict(values(runs, problem, name, "test"), known.tracks) for problem in tracked]
        verdicts.append([name, PREDICTED[known.tracks], *said])
    lines = table(["cell", "eigenvalues", "state", *problems], scores)
    lines += THEORY.format(solved=SOLVED, fewest=FEWEST).split("\n")
    return "\n".join([*lines, *table(["cell", "predicted", *tracked], verdicts), ""])


def by_size(runs: Sequence[Mapping[str, Any]]) -> str:
    """Whether larger states recall more, as a sentence; empty with fewer than three seeds."""
    found = []
    for seed in sorted({one["seed"] for one in runs}):
        pairs = [
            (one["state"], one["valid"]) for one in runs if one["seed"] == seed and one["problem"] == "recall"
        ]
        sizes, scores = np.array([pair for pair in pairs if pair[0]], float).reshape(-1, 2).T
        if len(sizes) >= 5:
            found.append(np.corrcoef(np.log(sizes), scores)[0, 1])
    if len(found) < FEWEST:
        return ""
    mean, half = interval(np.array(found))
    said = "agrees" if mean - half > 0 else "contradicted" if mean + half < 0 else "undecided"
    return (
        '\nRecall needs room: a state should recall more, the larger it is (Arora et al. 2024, "Based"). Correlation of the '
        f"score of `recall` with the logarithm of the state's size, over the recurrent cells: {shown(mean, half)} over "
        f"{len(found)} seeds: **{said}**.\n"
    )


def by_selection(runs: Sequence[Mapping[str, Any]], cells: Mapping[str, Any]) -> str:
    """Whether cells whose decays read the input do better where theory needs it, in sentences."""
    lines = []
    for problem in ("induction", "selective"):
        found = []
        for seed in sorted({one["seed"] for one in runs if one["problem"] == problem}):
            mine = [one for one in runs if (one["problem"], one["seed"]) == (problem, seed) and one["state"]]
            fixed = [one["valid"] for one in mine if cells[one["model"]].eigenvalues.endswith("fixed")]
            others = [one["valid"] for one in mine if not cells[one["model"]].eigenvalues.endswith("fixed")]
            if fixed and others:
                found.append(np.mean(others) - np.mean(fixed))
        if len(found) >= FEWEST:
            lines.append(f"- {problem}: {_judged(np.array(found))}")
    head = "A recurrence whose decays do not depend on the input is a filter and cannot choose what it keeps (Gu & Dao 2023, section 3.1).\n"
    about = "What the mean of the other recurrent cells is better by at the training length, by seed:"
    return _listed(head + about, lines)


def _judged(differences: np.ndarray) -> str:
    """Mean, interval and verdict of differences that theory predicts to be above zero."""
    mean, half = interval(differences)
    found = "agrees" if mean - half > 0 else "contradicted" if mean + half < 0 else "undecided"
    return f"{shown(mean, half)}, **{found}**"


def drawing(runs: Sequence[Mapping[str, Any]], cells: Mapping[str, Any], problems: Sequence[str]) -> Figure:
    """A panel for each problem, a line for each cell, coloured by what theory predicts of tracking a state."""
    met = {
        problem: [name for name in cells if len(values(runs, problem, name, "valid"))] for problem in problems
    }
    rows = [problems[at : at + COLUMNS] for at in range(0, len(problems), COLUMNS)]
    heights = [max(len(met[problem]) for problem in row) for row in rows]
    size = 3.3 * min(COLUMNS, len(problems)), 0.8 + sum(0.8 + 0.21 * height for height in heights)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(len(rows), min(COLUMNS, len(problems)), height_ratios=heights)
    for number, problem in enumerate(problems):
        axes = figure.add_subplot(grid[divmod(number, COLUMNS)])
        axes.set_title(problem, fontsize=10)
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        for at, name in enumerate(met[problem]):
            colour = COLOURS[PREDICTED[cells[name].tracks]]
            for split, shift, fill in (("valid", -0.15, colour), ("test", 0.15, "white")):
                mean, half = interval(values(runs, problem, name, split))
                style = {"color": colour, "markerfacecolor": fill, "marker": "o", "markersize": 4}
                axes.errorbar(mean, at + shift, xerr=np.nan_to_num(half), capsize=2, **style)
        chance = next(one["valid chance"] for one in runs if one["problem"] == problem)
        axes.axvline(chance, color=INK, linewidth=1, linestyle=":")
        axes.set(xlim=(-0.03, 1.03), ylim=(len(met[problem]) - 0.5, -0.5))
        axes.set_yticks(range(len(met[problem])), met[problem], fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel("share right", fontsize=8)
    marks = [Line2D([], [], color=colour, marker="o", label=said) for said, colour in COLOURS.items()]
    figure.legend(
        handles=marks, loc="outside lower center", ncols=3, fontsize=8, title="tracks a state, in theory"
    )
    return figure


def page(
    runs: Sequence[Mapping[str, Any]], cells: Mapping[str, Any], problems: Mapping[str, Any], machine: str
) -> None:
    """Write docs/appendix/memory.md and the picture."""
    assert runs, "no runs with this budget; train first, or give their --seconds and --parameters"
    measured = {}
    for problem in problems:
        seeds = [len(values(runs, problem, name, "valid")) for name in cells]
        if any(seeds):
            few, many, met = min(filter(None, seeds)), max(seeds), sum(map(bool, seeds))
            span = f"{few} to {many}" if few < many else f"{few}"
            measured[problem] = f"{problem} with {met} models and {span} seed{'s' * (many > 1)}"
    tried = {name: known for name, known in cells.items() if any(one["model"] == name for one in runs)}
    lengths = [
        f"{problem} {problems[problem].length} ({problems[problem].test_length})" for problem in measured
    ]
    head = HEAD.format(
        seconds=runs[0]["seconds"],
        budget=runs[0]["budget"],
        machine=machine,
        measured="; ".join(measured.values()),
        lengths=", ".join(lengths),
    )
    tracked = [problem for problem in measured if problem in TRACKING]
    PAGE.write_text(
        head
        + tables(runs, tried, [*measured])
        + by_sign(runs, tracked)
        + by_selection(runs, cells)
        + by_size(runs),
        "utf-8",
    )
    for suffix in ("png", "svg"):
        save(drawing(runs, tried, [*measured]), PICTURE.with_suffix(f".{suffix}"))
    print(f"Written to {PAGE}")
