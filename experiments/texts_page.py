"""Tables and picture of the runs of texts.py: docs/appendix/texts.md. Read next: texts.py."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from study import ROOT, interval, shown, table
from weft.figures.colours import BARS, GRID
from weft.figures.picture import save

PAGE, PICTURE = ROOT / "docs" / "appendix" / "texts.md", ROOT / "docs" / "pictures" / "memory" / "texts"
FEWEST, BESIDE = 3, "lstm"
HEAD = """# What each cell makes of language

Written by `python experiments/texts.py --write`; the runs are in `docs/pictures/memory/texts.jsonl`. The texts are read from files
that you give and are not kept. Processor: {machine}, one thread, shared with other work.

{summary}

Every decoder has two layers and at most {budget:,} parameters without embeddings and encoder; its width is found by bisection. A layer
is a Transformer block (`transformer`, with rotary positions, a small GPT), the same block with a cell in place of self-attention, or
an LSTM alone (`lstm, no block`). Only `mamba`, `ssd` and the delta rules have a convolution, which is part of the cell. Embeddings are
tied and have 96 features. All models have one learning rate (0.004, cosine over the CPU seconds), which was not tuned, and no dropout.

Equal CPU time rewards cells that are fast on this machine, not only those that learn much per update; *updates* is their number.
These budgets are small; the ranking holds only for them.

Models with fewer than three seeds are left out. ± is the 95 % interval of the mean over seeds (Student's t). Against `lstm`: the mean
difference paired by seed and its interval; **better** or **worse** only if that interval excludes 0, else undecided.
Verdicts are by single 95 % intervals, not corrected for their number (as Holm's method does): where nothing differs, one in twenty still
gets a verdict.

![Scores of every model](../pictures/memory/texts.png)
"""


class Score(NamedTuple):
    """A column: its heading, and whether less is better."""

    name: str
    heading: str
    less: bool = True


class Part(NamedTuple):
    """A text's part of the page."""

    title: str
    words: str
    scores: tuple[Score, ...]


PARTS = {
    "shakespeare": Part(
        "Letters: Tiny Shakespeare",
        "Batches of 16 pieces of 64 letters. Bits per letter on the validation part, 5 % of the text; every letter is predicted from the 32 to "
        "63 before it.",
        (Score("bits", "bits per letter"),),
    ),
    "wikitext": Part(
        "Subwords: WikiText-2",
        "2,000 pieces by byte-pair encoding, batches of 8 times 64 pieces. Perplexity per word, from the total loss over words and "
        "line ends of the first 1,000 lines of the validation part that are not empty; every piece is predicted from the 32 to 63 before it.",
        (Score("perplexity", "perplexity per word"),),
    ),
    "multi30k": Part(
        "Translation: Multi30k, English to German",
        "Each model is the decoder under the same Transformer encoder of two layers; one vocabulary of 2,000 pieces, batches of 32 "
        "sentences. Validation part (1,014 sentences): nats per piece with teacher forcing, and BLEU (13a) of greedy translations.",
        (Score("loss", "nats per piece"), Score("bleu", "BLEU", less=False)),
    ),
}


def values(runs: Sequence[Mapping[str, Any]], name: str, score: str) -> dict[int, float]:
    """A model's score by seed."""
    return {one["seed"]: one[score] for one in runs if one["model"] == name}


def against(one: Mapping[int, float], other: Mapping[int, float], *, less: bool) -> str:
    """The difference paired by seed, and what its interval says; empty with fewer than three seeds."""
    both = sorted(one.keys() & other.keys())
    if len(both) < FEWEST:
        return ""
    mean, half = interval(np.array([one[seed] - other[seed] for seed in both]))
    if abs(mean) <= half:
        return f"{shown(mean, half)}, undecided"
    return f"{shown(mean, half)}, **{'better' if (mean < 0) == less else 'worse'}**"


def rows_of(runs: Sequence[Mapping[str, Any]], names: Sequence[str], scores: Sequence[Score]) -> list[str]:
    """A row for each model, by the first score."""
    columns = [part for score in scores for part in (score.heading, f"against `{BESIDE}`")]
    rows = []
    for name in names:
        mine = [one for one in runs if one["model"] == name]
        updates = np.median([one["updates"] for one in mine])
        cells = [name, str(mine[0]["width"]), f"{updates:,.0f}"]
        for score in scores:
            found = values(runs, name, score.name)
            beside = values(runs, BESIDE, score.name)
            cells.append(shown(*interval(np.array([*found.values()]))))
            cells.append("" if name == BESIDE else against(found, beside, less=score.less))
        rows.append(cells)
    return table(["model", "width", "updates", *columns], rows)


def by_score(runs: Sequence[Mapping[str, Any]], names: Sequence[str], score: Score) -> list[str]:
    """The models that were measured, best first."""
    means = {name: np.mean([*found.values()]) for name in names if (found := values(runs, name, score.name))}
    return sorted(means, key=lambda name: means[name], reverse=not score.less)


def drawing(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Figure:
    """A panel for each text: scores with intervals, a dot for each seed."""
    texts = [text for text in PARTS if any(one["text"] == text for one in runs)]
    found = {text: [one for one in runs if one["text"] == text] for text in texts}
    orders = {text: by_score(found[text], names, PARTS[text].scores[0]) for text in texts}
    longest = max(map(len, orders.values()))
    figure = Figure(figsize=(3.6 * len(texts), 1.2 + 0.27 * longest), layout="constrained")
    for number, text in enumerate(texts, 1):
        axes, score = figure.add_subplot(1, len(texts), number), PARTS[text].scores[0]
        for at, name in enumerate(orders[text]):
            scores = np.array([*values(found[text], name, score.name).values()])
            mean, half = interval(scores)
            axes.plot(scores, [at + 0.25] * len(scores), ".", color=BARS[0], alpha=0.5, markersize=4)
            axes.errorbar(
                mean, at, xerr=np.nan_to_num(half), color=BARS[0], marker="o", markersize=4, capsize=2
            )
        axes.set_title(PARTS[text].title, fontsize=9)
        axes.set_yticks(range(len(orders[text])), orders[text], fontsize=8)
        axes.set_ylim(longest - 0.5, -0.5)
        axes.set_xlabel(score.heading + (", less is better" if score.less else ""), fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def counted(runs: Sequence[Mapping[str, Any]], score: Score) -> str:
    """What counting n-grams gives on the same text; empty if it was not measured."""
    found = [
        f"{one['model']} {one[score.name]:{',.0f' if one[score.name] >= 1000 else '.4g'}} ({one['seconds']:g} CPU seconds)"
        for one in runs
    ]
    if not found:
        return ""
    return (
        "To compare: n-gram models with modified Kneser-Ney smoothing (`weft.ngram`), which count the whole training part, of which "
        f"the networks read only some. {score.heading.capitalize()}: {', '.join(found)}."
    )


def summary(
    runs: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> str:
    """A row for each text: the best mean and whatever is not clearly worse, `lstm`, and counting n-grams."""
    rows = []
    for text, part in PARTS.items():
        mine, score = [one for one in runs if one["text"] == text], part.scores[0]
        if not mine:
            continue
        best, *others = by_score(mine, names, score)
        found = {name: values(mine, name, score.name) for name in (best, *others)}
        level = [one for one in others if "undecided" in against(found[one], found[best], less=score.less)]
        cells = [shown(*interval(np.array([*found[name].values()]))) for name in (best, BESIDE)]
        also = f"; not clearly worse: {', '.join(f'`{one}`' for one in level)}" if level else ""
        gram = min(
            (one for one in counts if one["text"] == text), key=lambda one: one[score.name], default=None
        )
        beside = "" if gram is None else f"{gram[score.name]:.4g} ({gram['model']})"
        rows.append([f"{part.title}, {score.heading}", f"`{best}` {cells[0]}{also}", cells[1], beside])
    return "\n".join(table(["text", "best mean, by paired intervals", f"`{BESIDE}`", "n-grams"], rows))


def page(runs: Sequence[Mapping[str, Any]], names: Sequence[str], machine: str) -> None:
    """Write docs/appendix/texts.md and the picture.

    Args:
        runs: of one budget, and for each text of one number of seconds; models with few seeds are left out.
        names: of all models.
        machine: the processors of the runs.
    """
    counts = [one for one in runs if "seed" not in one]
    seeds_of = Counter((one["text"], one["model"]) for one in runs if "seed" in one)
    runs = [one for one in runs if seeds_of[one["text"], one["model"]] >= FEWEST]
    assert runs, f"no model with {FEWEST} seeds; train first"
    budgets = {one["budget"] for one in runs}
    assert len(budgets) == 1, f"runs with different --parameters: {budgets}; give --runs with one of them"
    lines = [HEAD.format(machine=machine, budget=runs[0]["budget"], summary=summary(runs, counts, names))]
    for text, part in PARTS.items():
        mine = [one for one in runs if one["text"] == text]
        if not mine:
            continue
        seconds = {one["seconds"] for one in mine}
        assert len(seconds) == 1, f"{text}: runs with different --seconds: {seconds}"
        seeds = sorted({one["seed"] for one in mine})
        spent = f"{mine[0]['seconds']:g} CPU seconds of training a run; seeds {', '.join(map(str, seeds))}."
        order = by_score(mine, names, part.scores[0])
        lines += [f"## {part.title}", "", f"{part.words} {spent}", "", *rows_of(mine, order, part.scores), ""]
        if words := counted([one for one in counts if one["text"] == text], part.scores[0]):
            lines += [words, ""]
    missing = [part.title for text, part in PARTS.items() if not any(one["text"] == text for one in runs)]
    if missing:
        lines += [f"Not measured yet: {'; '.join(missing)}.", ""]
    PAGE.write_text("\n".join(lines), "utf-8")
    for suffix in ("png", "svg"):
        save(drawing(runs, names), PICTURE.with_suffix(f".{suffix}"))
    print(f"Written to {PAGE}")
