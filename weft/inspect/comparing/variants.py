"""Group runs by variant: runs that differ only in their seed are repetitions of one variant.

Read next: report.py; ../../metrics/intervals.py, the test between two variants.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from weft.inspect.comparing.measured import RunFacts
from weft.metrics.intervals import Difference, compare_repeated, holm, mean_over_runs
from weft.metrics.metric import MetricScore


class VariantRuns(NamedTuple):
    """The runs of one variant."""

    name: str
    runs: list[RunFacts]


class TableCell(NamedTuple):
    """The value of a variant in a column: the mean over its runs."""

    value: float | None
    low: float | None
    high: float | None
    shown: str
    spread: float | None = None  # standard deviation over seeds


class TableColumn(NamedTuple):
    """A quantity in which variants are compared."""

    name: str
    cells: list[TableCell]
    higher_is_better: bool | None  # None: neither is better
    baselines: dict[str, float]  # empty unless it is a score
    scored: bool = False

    def winners(self) -> set[int]:
        """The best variant, unless its interval overlaps with another's or a baseline is as good."""
        known = {number: cell for number, cell in enumerate(self.cells) if cell.value is not None}
        if self.higher_is_better is None or len(known) < 2:
            return set()
        sign = 1 if self.higher_is_better else -1
        best = max(known, key=lambda number: sign * (known[number].value or 0.0))
        if self.too_little():
            return set()
        for number, cell in known.items():
            if number != best and not _clear(known[best], cell, sign):
                return set()
        return {best}

    def too_little(self) -> bool:
        """Whether no variant beats every baseline."""
        known = [cell.value for cell in self.cells if cell.value is not None]
        if not known or not self.baselines or self.higher_is_better is None:
            return False
        if self.higher_is_better:
            return max(known) <= max(self.baselines.values())
        return min(known) >= min(self.baselines.values())


class VariantTest(NamedTuple):
    """The test of the best variant against another one."""

    words: str
    metric: str
    difference: str  # with its interval
    p_value: str  # empty without a test
    corrected: str = ""  # Holm's, for as many tests as there are
    best: str = ""
    other: str = ""
    found: Difference | None = None

    @property
    def row(self) -> list[str]:
        """What a report shows of it."""
        return [self.words, self.metric, self.difference, self.p_value, self.corrected]


def gathered(runs: Sequence[RunFacts]) -> list[VariantRuns]:
    """The variants in order, each with its runs."""
    names = dict.fromkeys(run.variant or run.name for run in runs)
    return [VariantRuns(name, [run for run in runs if (run.variant or run.name) == name]) for name in names]


class Curve(NamedTuple):
    """The mean of a variant's curves, and their lowest and highest values, at the places that all have."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


Points = Sequence[Sequence[float]]  # places and values of a curve


def mean_curves(
    groups: Sequence[VariantRuns], points: Callable[[RunFacts], Points | None]
) -> dict[str, Curve]:
    """The curve of each variant that has one."""
    found = {}
    for group in groups:
        tables = [dict(zip(*one, strict=True)) for run in group.runs if (one := points(run)) is not None]
        if tables:
            x = sorted(set.intersection(*map(set, tables)))
            values = np.array([[one[place] for place in x] for one in tables], dtype=float)
            found[group.name] = Curve(np.array(x), values.mean(0), values.min(0), values.max(0))
    return found


def validated(name: str, run: RunFacts) -> Points | None:
    """A validation score over the updates of a run."""
    return run.curves.get(name)


class Quantity(NamedTuple):
    """A quantity of a run other than its scores, and its format."""

    value: Callable[[RunFacts], float | None]
    form: str
    higher_is_better: bool | None = None


QUANTITIES = {
    "parameters": Quantity(lambda run: run.parameters, ",.0f", False),
    "weights, MiB": Quantity(lambda run: run.weight_bytes / 2**20, ".2f", False),
    "memory for the backward pass of one example, MiB": Quantity(
        lambda run: _over(run.saved_bytes, 2**20), ".2f", False
    ),
    "updates": Quantity(lambda run: run.updates, ",.0f"),
    "target tokens": Quantity(lambda run: run.tokens, ",.0f"),
    "CPU minutes": Quantity(lambda run: _over(run.cpu_seconds, 60), ",.3f"),
    "training, tokens per CPU second": Quantity(lambda run: run.tokens_a_cpu_second, ",.0f", True),
    "training, tokens per second": Quantity(lambda run: run.tokens_a_second, ",.0f", True),
    "training, s": Quantity(lambda run: run.seconds, ",.1f"),
}


def columns(groups: Sequence[VariantRuns]) -> list[TableColumn]:
    """All columns of the comparison, scores first."""
    runs = [run for group in groups for run in group.runs]
    found = []
    for name in dict.fromkeys(score["name"] for run in runs for score in run.scores):
        rows = [[_named(run, name) for run in group.runs] for group in groups]
        known = [one for row in rows for one in row if one]
        lowest: dict[str, list[float]] = {}
        for one in known:
            for key, value in one["baselines"].items():
                lowest.setdefault(key, []).append(value)
        means = {key: fmean(values) for key, values in lowest.items()}
        found.append(
            TableColumn(name, [_score(row) for row in rows], known[0]["higher_is_better"], means, scored=True)
        )
    for title, (value, form, better) in QUANTITIES.items():
        cells = [_plain([value(run) for run in group.runs], form) for group in groups]
        if any(cell.value is not None for cell in cells):
            found.append(TableColumn(title, cells, better, {}))
    return found


def significance(groups: Sequence[VariantRuns]) -> list[VariantTest]:
    """Test the best variant by its main score against each other, over seeds and items.

    The p-values are corrected for the number of tests, and the verdicts follow from the corrected ones.
    """
    known = [group for group in groups if all(run.evidence for run in group.runs)]
    if len(known) < 2:
        return []
    first = known[0].runs[0].evidence
    assert first is not None
    sign = 1 if first.higher_is_better else -1
    best = max(known, key=lambda group: sign * fmean(_main(run) for run in group.runs))
    main = next((one for one in columns(known) if one.name == known[0].runs[0].scores[0]["name"]), None)
    note = ""
    if main is not None and main.too_little():
        name, value = max(main.baselines.items(), key=lambda one: sign * one[1])
        note = f"; no model beats the best baseline ({name} {value:.4g})"
    tests = [_tested(best, group) for group in known if group is not best]
    corrected = iter(holm([one.found.p_value for one in tests if one.found]))
    return [_judged(one, next(corrected), note) if one.found else one for one in tests]


def _tested(best: VariantRuns, other: VariantRuns) -> VariantTest:
    proofs = [[run.evidence for run in group.runs if run.evidence] for group in (other, best)]
    same = {(proof.items, proof.name) for side in proofs for proof in side}
    metric = proofs[1][0].metric
    words = f"{best.name} and {other.name}: not tested, since their test data differ"
    if len(same) > 1 or not proofs[1][0].items:
        return VariantTest(words, metric.name, "", "", best=best.name, other=other.name)
    found = compare_repeated(metric, *[[proof.rows for proof in side] for side in proofs])
    shown = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
    return VariantTest("", metric.name, shown, f"{found.p_value:.4g}", "", best.name, other.name, found)


def _judged(test: VariantTest, corrected: float, note: str) -> VariantTest:
    words = f"no clear difference between {test.best} and {test.other}"
    if corrected < 0.05:
        words = f"{test.best} is better than {test.other} (p < 0.05)"
    return test._replace(words=words + note, corrected=f"{corrected:.4g}")


def _main(run: RunFacts) -> float:
    assert run.evidence is not None
    return float(run.evidence.metric.value(run.evidence.rows.sum(0)))


def _named(run: RunFacts, name: str) -> dict[str, Any] | None:
    return next((one for one in run.scores if one["name"] == name), None)


def _score(row: Sequence[dict[str, Any] | None]) -> TableCell:
    """The mean over seeds, with an interval that includes the spread over seeds and over test items."""
    known = [one for one in row if one is not None]
    if not known:
        return TableCell(None, None, None, "")
    values = [one["value"] for one in known]
    value, form = fmean(values), _form(fmean(values))
    if any(one["low"] is None or one["high"] is None for one in known):
        return TableCell(value, None, None, f"{value:{form}}")
    if len(known) == 1:
        low, high = known[0]["low"], known[0]["high"]
        return TableCell(value, low, high, f"{value:{form}} [{low:{form}}, {high:{form}}]")
    low, high = mean_over_runs(
        [MetricScore(**{key: one[key] for key in MetricScore._fields}) for one in known]
    )
    low = max(low, 0.0) if min(values) >= 0 else low  # such a score has no values below 0
    spread = stdev(values)
    shown = f"{value:{form}} ± {spread:{form}} [{low:{form}}, {high:{form}}]"
    return TableCell(value, low, high, shown, spread)


def _plain(values: Sequence[float | None], form: str) -> TableCell:
    known = [value for value in values if value is not None]
    if not known:
        return TableCell(None, None, None, "")
    mean = fmean(known)
    spread = stdev(known) if len(known) > 1 else 0.0
    shown = f"{mean:{form}}" + (f" ± {spread:{form}}" if spread else "")
    return TableCell(mean, mean - spread, mean + spread, shown, spread if len(known) > 1 else None)


def _over(number: float | None, unit: int) -> float | None:
    return None if number is None else number / unit


def _clear(best: TableCell, other: TableCell, sign: int) -> bool:
    """Whether the intervals (or values, if there are none) do not overlap."""
    mine = best.low if sign > 0 else best.high
    theirs = other.high if sign > 0 else other.low
    mine = best.value if mine is None else mine
    theirs = other.value if theirs is None else theirs
    assert mine is not None and theirs is not None
    return sign * mine > sign * theirs


def _form(value: float) -> str:
    size = abs(value)
    return ".2f" if size > 1 else ".4f" if size >= 0.01 else ".3g"
