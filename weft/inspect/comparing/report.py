"""The report of a comparison: one table of everything, then charts, as HTML and as Markdown.

Read next: measured.py, where the numbers come from.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import __version__
from weft.inspect.comparing.evidence import Mean
from weft.inspect.comparing.measured import Measured
from weft.inspect.page.html import Head, document
from weft.inspect.views.view import Block, chart, said, series
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu
from weft.metrics.bootstrap import RESAMPLES, compare_statistics
from weft.metrics.metric import Metric
from weft.metrics.tags import TagAccuracy

PAIRED = (
    f"The best run against each other one by paired bootstrap, {RESAMPLES:,} resamples of the test items "
    "(Koehn 2004). p is how often chance alone would give a difference as large; from 0.05 on, the better "
    "number may be luck."
)
BRACKETS = (
    "In brackets: 95 % interval by bootstrap. Speeds are those of each training, so they compare runs that "
    "were trained on the same machine under the same load."
)
TESTED = ["verdict", "metric", "best minus the other", "p"]


class Column(NamedTuple):
    """One thing that runs are compared by."""

    name: str
    values: list[float | None]  # a run each
    shown: list[str]
    higher_is_better: bool | None  # None: nobody wins by it

    def winners(self) -> set[int]:
        """The runs that are best; none where all are equal or it is no contest."""
        known = [value for value in self.values if value is not None]
        if self.higher_is_better is None or len(known) < 2 or len(set(known)) == 1:
            return set()
        best = max(known) if self.higher_is_better else min(known)
        return {number for number, value in enumerate(self.values) if value == best}


class Tested(NamedTuple):
    """The best run against another one."""

    best: str
    other: str
    metric: str
    difference: float | None
    p_value: float | None
    words: str


def columns(runs: Sequence[Measured]) -> list[Column]:
    """What there is to compare, the scores first."""
    found = []
    for name in dict.fromkeys(score["name"] for run in runs for score in run.scores):
        scores = [next((one for one in run.scores if one["name"] == name), None) for run in runs]
        higher = next(one["higher_is_better"] for one in scores if one)
        values = [one["value"] if one else None for one in scores]
        found.append(Column(name, values, [_score(one) for one in scores], higher))
    plain: list[tuple[str, Callable[[Measured], float | None], str, bool | None]] = [
        ("parameters", lambda run: run.parameters, "{:,.0f}", False),
        ("weights, MiB", lambda run: run.weight_bytes / 2**20, "{:.2f}", False),
        ("kept for one example's gradient, MiB", _saved, "{:.2f}", False),
        ("training, target tokens/s", lambda run: run.tokens_a_second, "{:,.0f}", True),
        ("the same a CPU second", lambda run: run.tokens_a_cpu_second, "{:,.0f}", True),
        ("updates", lambda run: run.updates, "{:,.0f}", None),
        ("training, s", lambda run: run.seconds, "{:,.1f}", None),
    ]
    for title, value, form, better in plain:
        values = [value(run) for run in runs]
        if any(one is not None for one in values):
            found.append(
                Column(title, values, ["" if one is None else form.format(one) for one in values], better)
            )
    return found


def significance(runs: Sequence[Measured]) -> list[Tested]:
    """The best run by its test metric against each other one, by paired bootstrap."""
    known = [run for run in runs if run.statistics]
    if len(known) < 2:
        return []
    metric = _metric(known[0].metric)
    values = [float(metric.value(np.asarray(run.statistics).sum(0))) for run in known]
    best = known[int(np.argmax(values) if metric.higher_is_better else np.argmin(values))]
    found = []
    for run in known:
        if run is best:
            continue
        if (run.items, run.metric) != (best.items, best.metric):
            found.append(
                Tested(best.name, run.name, metric.name, None, None, "other test data: not compared")
            )
            continue
        result = compare_statistics(metric, np.asarray(run.statistics), np.asarray(best.statistics))
        sure = "is better (p < 0.05)" if result.p_value < 0.05 else "is not surely better"
        words = f"{best.name} {sure} than {run.name}"
        found.append(Tested(best.name, run.name, metric.name, result.difference, result.p_value, words))
    return found


def charts(runs: Sequence[Measured]) -> list[tuple[str, list[Block]]]:
    """Scores by length, learning curves and gradient reach, a line each run."""
    found: list[tuple[str, list[Block]]] = []
    lengths = [run for run in runs if any(row[2] is not None for row in run.by_length)]
    if lengths:
        labels = [row[0] for row in lengths[0].by_length]
        lines = [
            series(run.name, range(len(run.by_length)), [_or_nan(row[2]) for row in run.by_length])
            for run in lengths
        ]
        found.append(
            ("By length", [chart("BLEU by words in the source", "words", "BLEU", lines, labels=labels)])
        )
    names = dict.fromkeys(name for run in runs for name in run.curves)
    curves = [
        chart(
            f"Validation: {name}",
            "update",
            name,
            [series(run.name, *run.curves[name]) for run in runs if name in run.curves],
        )
        for name in names
    ]
    if curves:
        found.append(("Learning curves", curves))
    cells = dict.fromkeys(_place(cell) for run in runs for cell in run.reach)
    reach = [chart(place, "lag T - t", "‖∂h_T/∂h_t‖", _reaches(runs, place), log=True) for place in cells]
    if reach:
        words = [said(f"{run.name}: {sentence}") for run in runs for sentence in run.verdicts]
        head = said(
            "How much of a gradient comes back from the last state, as weft inspect shows it"
            + (f", on the example: {example}" if (example := runs[0].example) else ".")
        )
        found.append(("Gradient reach", [head, *reach, *words]))
    return found


def _saved(run: Measured) -> float | None:
    return None if run.saved_bytes is None else run.saved_bytes / 2**20


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _reaches(runs: Sequence[Measured], place: str) -> list[Block]:
    """A line for each run that has a cell at this place."""
    return [series(run.name, *run.reach[cell]) for run in runs for cell in run.reach if _place(cell) == place]


def page(runs: Sequence[Measured], title: str) -> str:
    """The report as HTML, one file without network."""
    names, table = ["run", *(one.name for one in columns(runs))], _cells(runs)
    first: list[Block] = [
        {"kind": "table", "head": names, "rows": [[_best(one) for one in row] for row in table]}
    ]
    first.append(said(f"Blue: best of its column. {BRACKETS}"))
    tested = significance(runs)
    sections = [("Scores", first)]
    if tested:
        rows = [[one.words, one.metric, _number(one.difference), _number(one.p_value)] for one in tested]
        sections.append(("Significance", [said(PAIRED), {"kind": "table", "head": TESTED, "rows": rows}]))
    sections += charts(runs)
    sections.append(
        (
            "How it was computed",
            [{"kind": "table", "head": ["run", "test", "score", "signature"], "rows": _signatures(runs)}],
        )
    )
    facts = [("task", f"{runs[0].task}, {runs[0].about}"), ("runs", str(len(runs))), ("Weft", __version__)]
    return document(Head(title, facts), sections)


def markdown(runs: Sequence[Measured], title: str) -> str:
    """The report as Markdown: the tables, and the curves' last values."""
    lines = [f"# {title}", "", f"Task {runs[0].task}, {runs[0].about}. Bold: best of its column.", ""]
    lines += _table(
        ["run", *(one.name for one in columns(runs))], [[_bold(one) for one in row] for row in _cells(runs)]
    )
    lines += ["", BRACKETS]
    tested = significance(runs)
    if tested:
        rows = [[one.words, one.metric, _number(one.difference), _number(one.p_value)] for one in tested]
        lines += ["", "## Significance", "", PAIRED, "", *_table(TESTED, rows)]
    lengths = [run for run in runs if run.by_length]
    if lengths:
        head = ["run", *(f"{row[0]} words (n = {row[1]})" for row in lengths[0].by_length)]
        rows = [[run.name, *(_number(row[2]) for row in run.by_length)] for run in lengths]
        lines += ["", "## BLEU by length", "", *_table(head, rows)]
    names = dict.fromkeys(name for run in runs for name in run.curves)
    if names:
        rows = [[run.name, *(_last(run.curves.get(name)) for name in names)] for run in runs]
        lines += ["", "## Last validation", "", *_table(["run", *names], rows)]
    if any(run.verdicts for run in runs):
        lines += ["", "## Gradient reach", ""]
        lines += [f"- {run.name}: {sentence}" for run in runs for sentence in run.verdicts]
    lines += [
        "",
        "## How it was computed",
        "",
        *_table(["run", "test", "score", "signature"], _signatures(runs)),
        "",
    ]
    return "\n".join(lines)


def _cells(runs: Sequence[Measured]) -> list[list[tuple[str, bool]]]:
    """Names and numbers of each run, and whether each is the best of its column."""
    table = columns(runs)
    return [
        [(run.name, False), *((one.shown[number], number in one.winners()) for one in table)]
        for number, run in enumerate(runs)
    ]


def _metric(name: str) -> Metric:
    known: dict[str, Metric] = {one.name: one for one in (Bleu(), Accuracy(), TagAccuracy())}
    return known.get(name) or Mean(name, higher_is_better=name == "accuracy")


def _signatures(runs: Sequence[Measured]) -> list[list[str]]:
    rows = []
    for run in runs:
        rows += [
            [run.name, run.tested, one["name"], _sized(one["signature"], one["size"])] for one in run.scores
        ]
        if not run.scores:
            rows.append([run.name, run.tested, "", ""])
    return rows


def _sized(signature: str, size: int) -> str:
    """A signature that says how many items were scored."""
    return signature if "|n:" in f"|{signature}" else f"{signature}|n:{size}"


def _score(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    size = abs(one["value"])
    form = ".2f" if size > 1 else ".4f" if size >= 0.01 else ".3g"
    interval = ""
    if one["low"] is not None and one["high"] is not None:
        interval = f" [{one['low']:{form}}, {one['high']:{form}}]"
    return f"{one['value']:{form}}{interval}"


def _place(cell: str) -> str:
    """A cell's place without its kind: "encoder, layer 1, forward (LSTM)" is "encoder, layer 1, forward"."""
    return cell.rpartition(" (")[0]


def _best(cell: tuple[str, bool]) -> Any:
    return {"best": cell[0]} if cell[1] else cell[0]


def _bold(cell: tuple[str, bool]) -> str:
    return f"**{cell[0]}**" if cell[1] else cell[0]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _last(points: list[list[float]] | None) -> str:
    return "" if points is None else _number(points[1][-1])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [head, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    return [lines[0], f"|{'---|' * len(head)}", *lines[1:]]
