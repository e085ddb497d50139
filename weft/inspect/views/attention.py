"""Attention: of each output over the inputs, and inside the model, of every head of every layer."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from weft.diagnose.attention import entropy
from weft.figures.axes import blank, printable
from weft.figures.colours import GRID, INK, weight_colours
from weft.figures.records import Axes, Figure
from weft.inspect.views.cells import labels_of
from weft.inspect.views.view import Block, View, matrix, said
from weft.run import LoadedRun
from weft.tasks.inspection import AttentionMap, Hypothesis, Inspection, self_attention

ISOLATE, END = "\u2068", "\u2069"
"""Unicode isolates around a text that may run from right to left, to protect the text around it."""

WRITTEN, WORD, MOMENT = "an output token", "an input token", "a moment of the recording"
PLACE = "a region of the picture, by its row and column from the top left"


def soft_alignments(number: int, one: Hypothesis, source: Sequence[str], text: str) -> str:
    """A block in the format of SoftAlignments (Rikters, Fishel & Bojar 2017) and Nematus.

    number ||| target words ||| score ||| source words ||| source count, target count, then a row of weights
    for each target word.
    """
    ends = len(one.looks[0].weights[0]) if one.looks else 0
    head = (
        f"{number} ||| {' '.join(one.pieces)} ||| {one.score:.6f} ||| {' '.join(source)} ||| "
        f"{ends} {len(one.pieces)}"
    )
    rows = [" ".join(f"{weight:.6f}" for weight in row) for row in one.looks[0].weights.tolist()]
    return "\n".join([head, *rows, ""])


class AlignmentView(View):
    """Attention from each output to the inputs."""

    title = "Alignment"
    order = 10

    def __init__(
        self,
        source: Sequence[str],
        text: str,
        hypotheses: Sequence[Hypothesis],
        column: str = WORD,
        row: str = WRITTEN,
    ) -> None:
        self.source, self.text, self.hypotheses = source, text, hypotheses
        self.column, self.row = column, row

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "AlignmentView | None":
        attended = [one for one in subject.hypotheses if one.looks]
        if not attended:
            return None
        if subject.picture is not None and subject.picture.drawn:
            return cls(subject.source, subject.text, attended, row=PLACE)
        column = PLACE if subject.picture is not None else MOMENT if subject.heard is not None else WORD
        return cls(subject.source, subject.text, attended, column)

    def blocks(self) -> list[Block]:
        groups = [
            {
                "name": f"{number}. {ISOLATE}{one.text or '(nothing)'}{END}   ({one.score:.3f})",
                "items": [matrix(look.name, look.weights, one.pieces, self.source) for look in one.looks],
            }
            for number, one in enumerate(self.hypotheses, 1)
        ]
        soft = "\n".join(
            soft_alignments(number, one, self.source, self.text) for number, one in enumerate(self.hypotheses)
        )
        words = "\n".join(one.pharaoh for one in self.hypotheses)
        blocks: list[Block] = [
            said(f"Each row is {self.row}, each column {self.column}. A row sums to 1."),
            {"kind": "matrices", "pick": "hypothesis", "each": "attention", "groups": groups},
        ]
        if words.strip():
            blocks.append(_export("alignment.pharaoh", "Pharaoh (words)", words))
        return [*blocks, _export("alignment.soft.txt", "SoftAlignments (pieces)", soft)]

    def table(self) -> Iterable[Sequence[object]]:
        yield "hypothesis", "attention", "target position", "target", "source position", "source", "weight"
        for number, one in enumerate(self.hypotheses, 1):
            for look in one.looks:
                for (t, s), weight in np.ndenumerate(look.weights):
                    yield number, look.name, t + 1, one.pieces[t], s + 1, self.source[s], float(weight)

    def figure(self) -> "Figure":
        from weft.figures.alignment import heat_map

        best = self.hypotheses[0]
        look = best.looks[0]
        title = f"{self.text}\n{best.text}" + ("" if look.name == "attention" else f"\n({look.name})")
        return heat_map(look.weights, list(self.source), best.pieces, title=title)


def _export(name: str, label: str, text: str) -> Block:
    return {"kind": "export", "name": name, "label": label, "text": text}


MOST_NAMED = 32  # maximum number of positions with labels in the figure


class HeadsView(View):
    """Self-attention, head by head."""

    title = "Attention heads"
    order = 50

    def __init__(self, heads: Sequence[AttentionMap], labels: Sequence[Sequence[str]]) -> None:
        self.heads, self.labels = heads, labels

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "HeadsView | None":
        if subject.batch is None:
            return None
        heads = self_attention(opened.model, subject.batch)
        if not heads:
            return None
        return cls(heads, [labels_of(head.name, len(head.weights[0]), subject) for head in heads])

    def blocks(self) -> list[Block]:
        layers: dict[str, list[object]] = {}
        rows = []
        for head, names in zip(self.heads, self.labels, strict=True):
            layer, _, which = head.name.rpartition(", ")
            spread = _spread(head)
            most = np.log(np.arange(1, len(spread) + 1) if layer.startswith("decoder") else len(names))
            share = float(spread.sum() / max(float(np.broadcast_to(most, spread.shape).sum()), 1e-9))
            note = f"entropy {spread.mean():.2f} nats, {share:.0%} of the maximum"
            items = layers.setdefault(layer, [])
            items.append(matrix(which, head.weights, names[: len(head.weights)], names, note=note))
            own = float(np.mean(np.diagonal(head.weights)))
            before = float(np.mean(np.diagonal(head.weights, -1))) if len(spread) > 1 else 0.0
            rows.append([layer, which, f"{spread.mean():.2f}", f"{share:.0%}", f"{own:.2f}", f"{before:.2f}"])
        groups = [{"name": layer, "items": items} for layer, items in layers.items()]
        columns = ["layer", "head", "entropy, nats", "of the maximum", "weight on itself"]
        return [
            said("Each row is a query position, each column a key position that it attends to."),
            {"kind": "matrices", "pick": "layer", "each": "head", "groups": groups},
            {"kind": "table", "head": [*columns, "weight on the previous"], "rows": rows},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "head", "query position", "query", "key position", "key", "weight"
        for head, names in zip(self.heads, self.labels, strict=True):
            for (t, s), weight in np.ndenumerate(head.weights):
                yield head.name, t + 1, names[t], s + 1, names[s], float(weight)

    def figure(self) -> "Figure":
        rows: dict[str, list[int]] = {}
        for number, head in enumerate(self.heads):
            rows.setdefault(head.name.rpartition(", ")[0], []).append(number)
        columns = max(map(len, rows.values()))
        figure = blank(2.6 * columns + 1.4, 2.8 * len(rows) + 0.4)
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for line, (layer, numbers) in zip(grid, rows.items(), strict=True):
            for axes, number in zip(line, numbers, strict=False):
                head, names = self.heads[number], self.labels[number]
                axes.set_axis_on()
                drawn = axes.imshow(head.weights, cmap=weight_colours(), vmin=0, vmax=1, aspect="equal")
                _named(axes, names, len(head.weights), first=number == numbers[0])
                which = head.name.rpartition(", ")[2]
                title = f"{layer}, {which}\n{_spread(head).mean():.2f} nats"
                axes.set_title(title, fontsize=8, color=INK, parse_math=False)
        figure.colorbar(drawn, ax=grid, pad=0.01, shrink=0.6, label="weight").ax.tick_params(labelsize=7)
        return figure


def _spread(head: AttentionMap) -> np.ndarray:
    """The entropy of each row of weights."""
    return entropy(torch.from_numpy(head.weights).double()).numpy()


def _named(axes: "Axes", names: Sequence[str], rows: int, *, first: bool) -> None:
    """Label a head with its pieces, rows only at the first head of a layer; nothing if there are too many."""
    shown = [printable(name)[:14] for name in names]
    few = len(shown) <= MOST_NAMED
    style: dict[str, Any] = {"fontsize": 5, "parse_math": False}
    axes.set_xticks(range(len(shown)) if few else [], shown if few else [], rotation=90, **style)
    side = few and first
    axes.set_yticks(range(rows) if side else [], shown[:rows] if side else [], **style)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color(GRID)
