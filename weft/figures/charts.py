"""Charts of scores and of words, with matplotlib: what several tasks and commands draw.

The scores of a comparison or of one run, with intervals; scores by sentence length, the figure that made
attention famous, and by place; losses by frequency of tokens; a map of words; the trials of a search over
settings. Read next: picture.py, which saves them; ../metrics/bylength.py; ../inspect/comparing/report.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from weft.errors import DataError
from weft.figures.axes import bar_axes, blank, legend, name_point, plain_axes, printable
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.records import Bucket, plane
from weft.metrics.bylength import LengthRow
from weft.metrics.scored import ScoreWithBaselines
from weft.wording import plural

LINES = ("--", ":", "-.")


class VariantScore(NamedTuple):
    """The score of a variant, its interval, and the scores of its single trainings."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    seeds: Sequence[float]


class ScorePanel(NamedTuple):
    """One score of all variants, and of the baselines by their names."""

    name: str
    points: Sequence[VariantScore]
    baselines: Mapping[str, float]


def run_figure(scores: Sequence[ScoreWithBaselines], *, title: str, shared: bool = False) -> Figure:
    """A panel for each score of one run; `shared`: all on one scale."""
    own = [VariantScore("this run", one.value, one.score.low, one.score.high, ()) for one in scores]
    panels = [
        ScorePanel(one.score.name, [point], one.baselines) for one, point in zip(scores, own, strict=True)
    ]
    return scores_figure(panels, title=title, shared=shared)


def scores_figure(panels: Sequence[ScorePanel], *, title: str, shared: bool = False) -> Figure:
    """A panel for each score with a row for each variant: mean, interval, and a mark for each training."""
    if not panels:
        raise DataError("scores_figure: expected at least 1 score, got 0")
    heights = [0.9 + 0.3 * max(1, len(one.points)) for one in panels]
    figure = blank(7.4, 0.4 + sum(heights), dpi=120)
    rows = figure.subplots(len(panels), 1, squeeze=False, sharex=shared, height_ratios=heights)[:, 0]
    for axes, one in zip(rows, panels, strict=True):
        for place, point in enumerate(one.points):
            if point.low is not None and point.high is not None:
                axes.plot([point.low, point.high], [place, place], color=BARS[0], linewidth=4, alpha=0.35)
            axes.plot([point.value], [place], "o", color=BARS[0], zorder=3)
            if len(point.seeds) > 1:
                axes.plot(point.seeds, [place] * len(point.seeds), "|", color=INK, markersize=9, zorder=4)
        for number, (name, value) in enumerate(one.baselines.items()):
            label = f"baseline: {printable(name)}"
            axes.axvline(value, color=FAINT, linestyle=LINES[number % len(LINES)], linewidth=1, label=label)
        names = [printable(point.name) for point in one.points]
        axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(printable(one.name), fontsize=9, color=INK, parse_math=False)
        plain_axes(axes)
        axes.tick_params(axis="y", labelcolor=INK)
        if one.baselines:
            legend(axes, fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.suptitle(printable(title), fontsize=10, color=INK, parse_math=False)
    return figure


def quality_by_length(
    rows: Sequence[LengthRow], *, title: str, x: str = "words in the source sentence"
) -> Figure:
    """Bars of one metric by source length, with intervals and counts."""
    scores = [row.score for row in rows if row.score is not None]
    if not scores:
        raise DataError("quality by length: expected at least one score, got none")
    figure = blank(max(6.4, 0.9 + 0.34 * len(rows)), 4.2, layout=None)
    axes = figure.add_axes((0.1, 0.2, 0.88, 0.68))
    for place, row in enumerate(rows):
        score = row.score
        if score is None:
            continue
        axes.bar(place, score.value, 0.72, color=BARS[0], linewidth=0)
        top = score.value
        if score.low is not None and score.high is not None:
            axes.vlines(place, score.low, score.high, color=INK, linewidth=1, alpha=0.7)
            top = max(top, score.high)
        text = f"{score.value:.1f}" if abs(score.value) > 1 else f"{score.value:.3f}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        label = axes.annotate(text, (place, top), (0, 3), textcoords="offset points", ha="center")
        label.set(fontsize=8, color=INK, bbox=box)
    axes.set_xticks(range(len(rows)), [_tick(row) for row in rows])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, None)
    axes.margins(y=0.12)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(scores[0].name, color=INK)
    bar_axes(axes)
    axes.set_title(printable(title), fontsize=13, color=INK, pad=10, parse_math=False)
    note = "\n".join(dict.fromkeys(score.signature for score in scores))
    figure.text(0.1, 0.0, note, fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    return figure


def _tick(row: LengthRow) -> str:
    label = row.label.replace("<=", "≤ ").replace(">", "> ").replace("-", "–")
    return f"{label}\nn = {row.sentences:,}"


BINS = 12
"""Maximum points of a line; with more places, neighbouring ones are grouped."""


class PlaceMean(NamedTuple):
    """The mean of the values at a place or group of places, with its 95 % interval."""

    place: float
    mean: float
    low: float
    high: float


def points(places: np.ndarray, values: np.ndarray) -> list[PlaceMean]:
    """Means of values [N] by place [N]; grouped places have similar numbers of values.

    Example:
        >>> [(one.place, one.mean) for one in points(np.array([1, 1, 2]), np.array([0.0, 1.0, 3.0]))]
        [(1.0, 0.5), (2.0, 3.0)]
    """
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    known = np.unique(places)
    if len(known) > BINS:
        cuts = np.unique(np.quantile(places, np.arange(1, BINS) / BINS))
        group = np.searchsorted(cuts, places, side="left")
    else:
        group = np.searchsorted(known, places)
    found = []
    for number in np.unique(group):
        members = values[group == number]
        half = 1.96 * float(members.std(ddof=1)) / np.sqrt(len(members)) if len(members) > 1 else 0.0
        mean = float(members.mean())
        middle = float(places[group == number].mean())
        found.append(PlaceMean(middle, mean, mean - half, mean + half))
    return found


def by_place(
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    x: str,
    y: str,
    title: str,
    baselines: Mapping[str, float],
) -> Figure:
    """Places [N] and values [N] as lines with 95 % bands, and the baselines as horizontal lines."""
    figure = blank(7.6, 4.2)
    axes = figure.subplots()
    for number, (name, (places, values)) in enumerate(lines.items()):
        drawn, colour = points(places, values), BARS[number % len(BARS)]
        at = [one.place for one in drawn]
        low, high = [one.low for one in drawn], [one.high for one in drawn]
        axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, [one.mean for one in drawn], color=colour, marker="o", markersize=3.5, label=name)
    for number, (name, value) in enumerate(baselines.items()):
        style = ("--", ":", "-.")[number % 3]
        axes.axhline(value, color=INK, linewidth=1, linestyle=style, label=f"baseline: {name}")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.1)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    plain_axes(axes)
    axes.set_title(printable(title), fontsize=11, color=INK, parse_math=False)
    legend(axes, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def nats_by_frequency(buckets: Sequence[Bucket], *, title: str, note: str) -> Figure:
    """The loss per token as bars, for unseen, rare and frequent tokens."""
    names = list(buckets[0].nats) if buckets else []
    figure = blank(7.6, 4.2, layout=None)
    axes = figure.add_axes((0.1, 0.24, 0.88, 0.64))
    wide = 0.8 / max(1, len(names))
    for number, name in enumerate(names):
        middle = np.arange(len(buckets)) - 0.4 + wide * (number + 0.5)
        heights = [bucket.nats[name] for bucket in buckets]
        axes.bar(middle, heights, wide * 0.92, color=BARS[number % len(BARS)], label=name, linewidth=0)
        for x, y in zip(middle.tolist(), heights, strict=True):
            axes.text(x, y, f"{y:.2f}", fontsize=7.5, color=INK, ha="center", va="bottom")
    ticks = [f"seen {bucket.least:,}+\nn = {bucket.tokens:,}" for bucket in buckets]
    axes.set_xticks(range(len(buckets)), ticks, fontsize=8)
    axes.set_ylabel("nats per token", color=INK)
    bar_axes(axes)
    axes.set_title(printable(title), fontsize=12, color=INK, pad=10, parse_math=False)
    if names:
        legend(axes, fontsize=7.5, loc="upper right")
    figure.text(0.1, 0.0, note, fontsize=6.5, color=FAINT, va="bottom", parse_math=False)
    return figure


def word_map(words: Sequence[str], vectors: np.ndarray, *, title: str, marked: int = 0) -> Figure:
    """Draw words at the places of their vectors [N, D]."""
    places, share = plane(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
    side = 5 + min(4, len(words) / 20)
    figure = blank(side, side, dpi=120)
    axes = figure.subplots()
    axes.set_title(title, color=INK, fontsize=10, parse_math=False)
    colours = [BARS[1] if number < marked else BARS[0] for number in range(len(words))]
    axes.scatter(places[:, 0], places[:, 1], s=9, color=colours)
    for number, (word, place) in enumerate(zip(words, places, strict=True)):
        name_point(axes, word, place, color=INK, fontweight="bold" if number < marked else "normal")
    axes.set_xlabel(f"principal components of unit vectors, {100 * share:.0f} % of their variance", color=INK)
    axes.margins(0.12)
    plain_axes(axes, labelsize=7)
    return figure


MARKS = {
    "o": "trained to its end",
    "x": "ended early",
    "v": "ended early, below the picture",
    "^": "ended early, above the picture",
}


def history_figure(trials: Sequence[tuple[int, float, bool]], *, metric: str, higher: bool) -> Figure:
    """The score of each trial, and the best score so far as a line; scores far off are drawn at the edge."""
    if not trials:
        raise DataError("history_figure: expected at least 1 trial with a score, got 0")
    figure = blank(7.4, 3.6, dpi=120)
    axes = figure.add_subplot()
    best: list[float] = []
    for _, score, _ in trials:
        best.append(score if not best else (max if higher else min)(best[-1], score))
    axes.step([number for number, _, _ in trials], best, where="post", color=BARS[0], label="best so far")
    low, high = _shown(trials)
    kinds = [(number, score, "o" if whole else "x") for number, score, whole in trials]
    kinds = [
        (n, low, "v") if s < low else (n, high, "^") if s > high else (n, s, mark) for n, s, mark in kinds
    ]
    for mark, name in MARKS.items():
        points = [(number, score) for number, score, own in kinds if own == mark]
        if points:
            colour = BARS[0] if mark == "o" else FAINT
            axes.plot(*zip(*points, strict=True), mark, color=colour, label=name, clip_on=False)
    if low < high:
        axes.set_ylim(low, high)
    axes.set_xlabel("trial; 0 is the recipe as it is", color=INK, fontsize=9)
    axes.set_ylabel(printable(metric), color=INK, fontsize=9, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes)
    legend(axes)
    return figure


def importance_figure(importance: Mapping[str, float], *, metric: str, trials: int) -> Figure:
    """How much each setting matters, as bars; the most important one on top."""
    if not importance:
        raise DataError("importance_figure: expected at least 1 setting, got 0")
    figure = blank(7.4, 1.1 + 0.32 * len(importance), dpi=120)
    axes = figure.add_subplot()
    ordered = sorted(importance.items(), key=lambda one: one[1])
    axes.barh(range(len(ordered)), [share for _, share in ordered], color=BARS[0], height=0.6)
    axes.set_yticks(
        range(len(ordered)), [printable(name) for name, _ in ordered], fontsize=9, parse_math=False
    )
    about = f"importance for {printable(metric)}, from {plural(trials, 'trial')} trained to their end"
    axes.set_xlabel(about, color=INK, fontsize=9, parse_math=False)
    axes.set_xlim(left=0)
    plain_axes(axes)
    return figure


def _shown(trials: Sequence[tuple[int, float, bool]]) -> tuple[float, float]:
    """The ends of the axis: the scores of the whole trials, and as much again below and above."""
    scores = [score for _, score, _ in trials]
    whole = [score for _, score, ended in trials if ended] or scores
    margin = (max(scores) - min(scores)) / 10
    span = max(max(whole) - min(whole), margin)
    low, high = max(min(scores) - margin, min(whole) - span), min(max(scores) + margin, max(whole) + span)
    return low, high
