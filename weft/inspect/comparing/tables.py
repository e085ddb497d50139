"""A comparison for a paper: CSV, LaTeX (booktabs), two figures, and a summary of 80 columns for the terminal.

Read next: report.py, the whole report; ../../figures/charts.py.
"""

import csv
import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from weft.errors import ConfigError
from weft.figures.axes import legend, printable
from weft.figures.colours import INK
from weft.figures.records import Figure
from weft.inspect.comparing.budget import SPENT
from weft.inspect.comparing.measured import RunFacts
from weft.inspect.comparing.report import budgets, learning_curves
from weft.inspect.comparing.variants import (
    TableCell,
    TableColumn,
    columns,
    gathered,
    significance,
)
from weft.inspect.views.view import picture_of_lines
from weft.wording import plural

INTERVAL = "95 % intervals over test items, with several seeds also over these, in brackets"
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def scores_csv(runs: Sequence[RunFacts]) -> str:
    """One row for each variant, or baseline, and quantity: mean, standard deviation over seeds, interval.

    Plain numbers, such as those of parameters, have no interval.
    """
    groups = gathered(runs)
    rows: list[list[object]] = [["variant", "seeds", "quantity", "mean", "sd", "low", "high"]]
    for one in columns(groups):
        for group, cell in zip(groups, one.cells, strict=True):
            if cell.value is not None:
                ends = (cell.low, cell.high) if one.scored else (None, None)
                rows.append([group.name, len(group.runs), one.name, cell.value, cell.spread, *ends])
        for name, value in one.baselines.items():
            rows.append([f"baseline: {name}", "", one.name, value, "", "", ""])
    return _csv(rows)


def significance_csv(runs: Sequence[RunFacts]) -> str:
    """One row for each test of the best variant against another one."""
    rows: list[list[object]] = [
        ["best", "other", "metric", "difference", "low", "high", "p", "p_holm", "verdict"]
    ]
    for one in significance(gathered(runs)):
        found = (one.found.value, one.found.low, one.found.high, one.found.p_value) if one.found else [""] * 4
        rows.append([one.best, one.other, one.metric, *found, one.corrected, one.words])
    return _csv(rows)


def latex(runs: Sequence[RunFacts], title: str, budget: str = "") -> str:
    """Two tables with booktabs: scores with intervals and what was spent; and the tests, if there are any."""
    groups = gathered(runs)
    found = [one for one in columns(groups) if one.scored or one.name in SPENT]
    head = ["Variant", "Seeds", *(one.name[:1].upper() + one.name[1:] for one in found)]
    rows = [
        [_escaped(group.name), str(len(group.runs)), *(_latex_cell(one, number) for one in found)]
        for number, group in enumerate(groups)
    ]
    lowest = [
        [_escaped(f"baseline: {name}"), "", *(_number(one.baselines.get(name)) for one in found)]
        for name in dict.fromkeys(name for one in found for name in one.baselines)
    ]
    about = f"{title}. {INTERVAL}; bold: best in its column. {budgets(runs, budget)}"
    lines = ["% \\usepackage{booktabs}", *_table(head, [rows, lowest], about)]
    tested = [one for one in significance(groups) if one.found]
    if tested:
        head = ["Best", "Other", "Metric", "Difference", "$p$", "$p$ (Holm)"]
        rows = [
            [*map(_escaped, (one.best, one.other, one.metric))]
            + [f"${number}$" for number in (one.difference, one.p_value, one.corrected)]
            for one in tested
        ]
        about = f"{title}. Paired tests of the best variant, over test items and seeds."
        lines += ["", *_table(head, [rows], about, left=3)]
    return "\n".join(lines) + "\n"


def summary(runs: Sequence[RunFacts], title: str, budget: str = "", width: int = 80) -> str:
    """What the terminal shows: scores, what was spent, verdicts; no line is longer than `width`."""
    groups = gathered(runs)
    lines = [*textwrap.wrap(title, width), *textwrap.wrap(runs[0].subject, width)]
    for one in columns(groups):
        if not one.scored and one.name not in SPENT:
            continue
        better = {True: ", higher is better", False: ", lower is better", None: ""}[one.higher_is_better]
        lines += ["", one.name + (f"{better}, [95 % interval]" if one.scored else "")]
        best = one.winners() if one.scored else set()
        for number, (group, cell) in enumerate(zip(groups, one.cells, strict=True)):
            mark = "  <- best" if number in best else ""
            lines += _row(group.name, cell.shown + mark, width)
        for name, value in one.baselines.items():
            lines += _row(f"baseline: {name}", f"{value:.4g}", width)
    untested = "; ".join(dict.fromkeys(run.tested for run in runs if not run.scores))
    if untested:
        lines += ["", *textwrap.wrap(f"no scores, and no figure of them: {untested}", width)]
    lines += ["", *textwrap.wrap(budgets(runs, budget), width)]
    repeated = max(len(group.runs) for group in groups)
    if repeated > 1:
        lines += textwrap.wrap(f"± standard deviation over up to {plural(repeated, 'seed')}", width)
    for test in significance(groups):
        shown = f": {test.metric} {test.difference}, p {test.p_value}, p (Holm) {test.corrected}"
        lines += textwrap.wrap(test.words + (shown if test.found else ""), width, subsequent_indent="  ")
    return "\n".join(lines)


def figures(runs: Sequence[RunFacts], title: str) -> "dict[str, Figure]":
    """The figures by the names of their files: scores with intervals, validation curves of each variant."""
    from weft.figures.charts import ScorePanel, VariantScore, scores_figure

    groups = gathered(runs)
    panels = []
    for one in (column for column in columns(groups) if column.scored):
        known = [pair for pair in zip(groups, one.cells, strict=True) if pair[1].value is not None]
        points = [
            VariantScore(group.name, cell.value, cell.low, cell.high, _values(group.runs, one.name))
            for group, cell in known
        ]
        panels.append(ScorePanel(one.name, points, one.baselines))
    found = {"scores": scores_figure(panels, title=title)} if panels else {}
    if curves := learning_curves(runs):
        found["curves"] = picture_of_lines(curves)
        for axes in found["curves"].axes:
            legend(axes, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
        found["curves"].suptitle(printable(title), fontsize=10, color=INK, parse_math=False)
    return found


def _values(runs: Sequence[RunFacts], name: str) -> list[float]:
    return [float(one["value"]) for run in runs for one in run.scores if one["name"] == name]


def _csv(rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _latex_cell(one: TableColumn, number: int) -> str:
    cell: TableCell = one.cells[number]
    shown = cell.shown.replace("±", r"\pm").replace(",", "{,}") if not one.scored else cell.shown
    shown = shown.replace("±", r"\pm")
    if not shown:
        return ""
    return rf"$\mathbf{{{shown}}}$" if one.scored and number in one.winners() else f"${shown}$"


def _number(value: float | None) -> str:
    return "" if value is None else f"${value:.4g}$"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _table(
    head: Sequence[str], parts: Sequence[Sequence[Sequence[str]]], about: str, left: int = 1
) -> Iterator[str]:
    yield from (r"\begin{table}", r"  \centering", r"  \small")
    yield rf"  \begin{{tabular}}{{{'l' * left}{'r' * (len(head) - left)}}}"
    yield r"    \toprule"
    yield f"    {' & '.join(one if '$' in one else _escaped(one) for one in head)} \\\\"
    for part in filter(None, parts):
        yield r"    \midrule"
        yield from (f"    {' & '.join(row)} \\\\" for row in part)
    yield from (r"    \bottomrule", r"  \end{tabular}", rf"  \caption{{{_escaped(about)}}}", r"\end{table}")


def _row(name: str, value: str, width: int) -> list[str]:
    """A name on the left and its value on the right, on two lines where one is too short."""
    if len(name) + len(value) + 4 <= width:
        return [f"  {name}{value:>{width - len(name) - 2}}"]
    names = textwrap.wrap(name, width - 2, initial_indent="  ", subsequent_indent="  ")
    return [*names, *textwrap.wrap(value, width - 6, initial_indent=" " * 6, subsequent_indent=" " * 6)]


SEED = re.compile(r"(^|\.)seed$")  # keys whose values only repeat a variant
MOST = 100  # maximum number of variants per command


class GridVariant(NamedTuple):
    """One combination."""

    name: str  # such as cell=lstm,seed=2
    changes: tuple[str, ...]  # section.key=value
    group: str  # the name without the seed: runs of one group are repetitions


def variants(grids: Sequence[str]) -> list[GridVariant]:
    """Every combination of KEY=VALUE,VALUE; keys joined by + change together."""
    axes = []
    for grid in grids:
        keys, equals, text = grid.partition("=")
        values = split(text)
        if not equals or not all(key.count(".") for key in keys.split("+")) or not all(values):
            raise ConfigError(
                f"--grid {grid}: expected a key of the recipe and its values, such as "
                "model.encoder.cell=elman,lstm"
            )
        if len(set(values)) < len(values):
            raise ConfigError(f"--grid {grid}: expected each value once, got one twice; remove it")
        axes.append([(keys.split("+"), value) for value in values])
    short = [keys[0].rpartition(".")[2] for keys, _ in (axis[0] for axis in axes)]
    whole = len(set(short)) < len(short)  # keys that share a short name are shown in full
    found = [_variant(chosen, whole) for chosen in product(*axes)]
    if len(found) > MOST:
        raise ConfigError(f"--grid: expected at most {MOST} variants, got {len(found)}; give fewer values")
    return found


def _variant(chosen: Sequence[tuple[list[str], str]], whole: bool) -> GridVariant:
    parts = {
        tuple(keys): ",".join(f"{key}={value}" for key in keys)
        if whole
        else f"{keys[0].rpartition('.')[2]}={value}"
        for keys, value in chosen
    }
    rivals = [part for keys, part in parts.items() if not all(map(SEED.search, keys))]
    changes = tuple(f"{key}={value}" for keys, value in chosen for key in keys)
    return GridVariant(",".join(parts.values()), changes, ",".join(rivals) or "the recipe")


def split(text: str) -> list[str]:
    """Split a text at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def folder_name(name: str) -> str:
    """A directory name for a variant."""
    plain = re.sub(r"[^\w.=,+]+", "-", name)
    return re.sub(r"-*([,=])-*", r"\1", plain).strip("-,.")
