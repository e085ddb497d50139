"""The report of a comparison: one table, then charts, as HTML and Markdown.

Read next: variants.py, what is compared; measured.py, the source of the numbers.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft.inspect.comparing.budget import spent
from weft.inspect.comparing.measured import RunFacts
from weft.inspect.comparing.variants import (
    Points,
    VariantRuns,
    columns,
    gathered,
    mean_curves,
    significance,
    validated,
)
from weft.inspect.page.html import PageHead, document
from weft.inspect.views.view import Block, chart, said, series
from weft.version import __version__

PAIRED = (
    "The best variant against each other variant, over seeds and test items (analysis of variance, Hillis "
    "2014; with one seed each, paired randomisation, Noreen 1989). p is the probability that chance alone "
    "gives a difference this large, in the last column corrected for the number of tests (Holm 1979); if it "
    "is 0.05 or more, the better score may be luck."
)
ONE_SEED = "Each variant was trained with one seed, so the variation between seeds is not included."
BRACKETS = (
    "In brackets: 95 % interval over test items; ± is the standard deviation over seeds, which the "
    "interval includes. A column has no best value if intervals overlap or no variant beats the baselines. "
    "Speeds were measured during each training: compare runs trained on one machine under the same load."
)
Section = tuple[str, list[Block]]  # a heading and its blocks
TESTED = ["verdict", "metric", "difference from the best [95 %]", "p", "p (Holm)"]


def charts(runs: Sequence[RunFacts]) -> list[Section]:
    """Scores by length, learning curves and gradient reach: a line for each variant, a band for its seeds."""
    groups, found = gathered(runs), []
    lengths = [run for run in runs if any(row[2] is not None for row in run.by_length)]
    if lengths:
        counted, score = lengths[0].by_length_axes
        labels = [row[0] for row in lengths[0].by_length]
        title = f"{score} by {counted}"
        found.append(("By length", [_chart(title, counted, score, groups, _by_length, labels=labels)]))
    if curves := learning_curves(runs):
        found.append(("Learning curves", curves))
    cells = dict.fromkeys(_place(cell) for run in runs for cell in run.reach)
    reach = [
        _chart(place, "lag T - t", "‖∂h(T)/∂h(t)‖", groups, partial(_reach, place), log=True)
        for place in cells
    ]
    if reach:
        words = [said(f"{run.name}: {sentence}") for run in runs for sentence in run.verdicts]
        head = said(
            "Norm of the gradient from the last state to earlier ones, as in weft inspect"
            + (f", on the example: {example}" if (example := runs[0].example) else ".")
        )
        found.append(("Gradient reach", [head, *reach, *words]))
    return found


def learning_curves(runs: Sequence[RunFacts]) -> list[Block]:
    """A chart for each validation score."""
    groups, names = gathered(runs), dict.fromkeys(name for run in runs for name in run.curves)
    return [_chart(f"Validation: {name}", "update", name, groups, partial(validated, name)) for name in names]


def _chart(
    title: str,
    x: str,
    y: str,
    groups: Sequence[VariantRuns],
    points: Callable[[RunFacts], Points | None],
    **how: Any,
) -> Block:
    """The mean of each variant as a line, and a band from its lowest to its highest seed."""
    curves = list(mean_curves(groups, points).items())
    lines = [series(name, one.x, one.mean, colour=n) for n, (name, one) in enumerate(curves)]
    bands = []
    for n, (name, one) in enumerate(curves):
        known = np.isfinite(one.mean)  # a length that no input has leaves a gap
        ends = {"x": one.x[known], "low": one.low[known], "high": one.high[known]}
        if (ends["low"] < ends["high"]).any():
            bands.append({"name": f"{name}, lowest to highest", **ends, "colour": n})
    return chart(title, x, y, lines, bands=bands, **how)


def _by_length(run: RunFacts) -> Points | None:
    values = [math.nan if row[2] is None else row[2] for row in run.by_length]
    return (range(len(values)), values) if values else None


def _reach(place: str, run: RunFacts) -> Points | None:
    return next((points for cell, points in run.reach.items() if _place(cell) == place), None)


def page(runs: Sequence[RunFacts], title: str, budget: str = "") -> str:
    """The report as a self-contained HTML file; `budget` says what each variant could use."""
    tables = [*_tables(runs, budget, "Blue: best in its column. "), *_last_validation(runs)]
    sections = [*tables, *charts(runs), _signatures(runs)]
    facts = [("task", runs[0].subject), ("runs", str(len(runs))), ("Weft", __version__)]
    return document(PageHead(title, facts), sections)


def budgets(runs: Sequence[RunFacts], budget: str) -> str:
    """The sentence about what the runs could use, and what they used."""
    return " ".join(filter(None, [f"Budget of each run: {budget}." if budget else "", spent(runs)]))


def markdown(runs: Sequence[RunFacts], title: str, budget: str = "") -> str:
    """The report as Markdown: the tables, and the last values of the curves."""
    (_, scores), *rest = [*_tables(runs, budget, ""), *_last_values(runs), _signatures(runs)]
    about = f"Task {runs[0].subject}. Bold: best in its column."
    lines = [f"# {title}", "", about, "", *_lines(scores)]
    for name, blocks in rest:
        lines += [f"## {name}", "", *_lines(blocks)]
    return "\n".join(lines)


def _lines(blocks: Sequence[Block]) -> list[str]:
    """Texts and tables as Markdown, each with an empty line after it."""
    found = []
    for block in blocks:
        if block["kind"] == "text":
            found += [block["text"], ""]
            continue
        rows = [
            [f"**{cell['best']}**" if isinstance(cell, dict) else cell for cell in row]
            for row in block["rows"]
        ]
        shown = [
            [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [block["head"], *rows]
        ]
        first, *others = [f"| {' | '.join(row)} |" for row in shown]
        found += [first, f"|{'---|' * len(block['head'])}", *others, ""]
    return found


def _tables(runs: Sequence[RunFacts], budget: str, mark: str) -> list[Section]:
    """Scores, tests and single runs; `mark` says how the best of a column is shown."""
    groups = gathered(runs)
    repeated = _repeated(groups)
    first = [_table_of(groups, marked=True), said(f"{mark}{BRACKETS}"), said(budgets(runs, budget))]
    sections = [("Scores", first)]
    tested = [one.row for one in significance(groups)]
    if tested:
        words = said(PAIRED if repeated else f"{PAIRED} {ONE_SEED}")
        sections.append(("Significance", [words, _table(TESTED, tested)]))
    if repeated:
        each = _table_of([VariantRuns(run.name, [run]) for run in runs], marked=False)
        sections.append(("Each run", [each]))
    return sections


def _last_values(runs: Sequence[RunFacts]) -> list[Section]:
    """What the charts show, as tables and lists."""
    found: list[Section] = []
    lengths = [run for run in runs if run.by_length]
    if lengths:
        counted, score = lengths[0].by_length_axes
        head = ["run", *(f"{row[0]} (n = {row[1]})" for row in lengths[0].by_length)]
        rows = [[run.name, *(_number(row[2]) for row in run.by_length)] for run in lengths]
        found.append((f"{score} by {counted}", [_table(head, rows)]))
    found += _last_validation(runs)
    reach = [f"- {run.name}: {sentence}" for run in runs for sentence in run.verdicts]
    return [*found, ("Gradient reach", [said("\n".join(reach))])] if reach else found


def _last_validation(runs: Sequence[RunFacts]) -> list[Section]:
    """The table to choose a variant by."""
    names = dict.fromkeys(name for run in runs for name in run.curves)
    rows = [[run.name, *(_last(run.curves.get(name)) for name in names)] for run in runs]
    words = said("Scores of the validation split, to choose by; a test split is looked at once, at the end.")
    return [("Last validation", [words, _table(["run", *names], rows)])] if names else []


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    return {"kind": "table", "head": list(head), "rows": list(rows)}


def _repeated(groups: Sequence[VariantRuns]) -> bool:
    return any(len(group.runs) > 1 for group in groups)


def _table_of(groups: Sequence[VariantRuns], *, marked: bool) -> Block:
    """For each variant its values, the best of a column marked; then baselines."""
    known = columns(groups)
    repeated = _repeated(groups)
    head = ["variant", *(["seeds"] if repeated else []), *(one.name for one in known)]
    best = [one.winners() if marked else set() for one in known]
    rows: list[list[Any]] = []
    for number, group in enumerate(groups):
        cells = [one.cells[number].shown for one in known]
        shown = [{"best": cell} if number in won else cell for cell, won in zip(cells, best, strict=True)]
        rows.append([group.name, *([str(len(group.runs))] if repeated else []), *shown])
    for name in dict.fromkeys(name for one in known for name in one.baselines):
        values = [_number(one.baselines.get(name)) for one in known]
        rows.append([f"baseline: {name}", *([""] if repeated else []), *values])
    return _table(head, rows)


def _signatures(runs: Sequence[RunFacts]) -> Section:
    rows = []
    for run in runs:
        rows += [
            [run.name, run.tested, one["name"], _sized(one["signature"], one["size"])] for one in run.scores
        ]
        if not run.scores:
            rows.append([run.name, run.tested, "", ""])
    return "Signatures", [_table(["run", "test", "score", "signature"], rows)]


def _sized(signature: str, size: int) -> str:
    """A signature with the number of scored items."""
    return signature if "|n:" in f"|{signature}" else f"{signature}|n:{size}"


def _place(cell: str) -> str:
    """The place of a cell without its kind: "encoder, layer 1" for "encoder, layer 1 (LSTM)"."""
    return cell.rpartition(" (")[0]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _last(points: list[list[float]] | None) -> str:
    return "" if points is None else _number(points[1][-1])
