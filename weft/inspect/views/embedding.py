"""A map of the embeddings: the words of the input with their nearest neighbours, and the input in context."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from weft.inspect.colours import BARS, FAINT, INK
from weft.inspect.fonts import printable
from weft.inspect.subjects.subject import Subject, Vectors
from weft.inspect.views.view import Block, View, said

NEIGHBOURS = 6


def plane(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The two main axes of points [N, D] as [N, 2], and the share of the spread that they hold.

    Each axis points so that its largest coordinate is above zero, and the same points give the same map.

    Example:
        >>> flat, share = plane(np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
        >>> flat.shape, round(share, 6)
        ((3, 2), 1.0)
    """
    centred = points.astype(np.float64) - points.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(points), 2))
    count = min(2, len(sizes))
    flat[:, :count] = left[:, :count] * sizes[:count]
    for axis in range(2):
        if flat[np.abs(flat[:, axis]).argmax(), axis] < 0:
            flat[:, axis] *= -1
    total = float((sizes**2).sum())
    return flat, float((sizes[:2] ** 2).sum()) / total if total else 1.0


def nearest(table: np.ndarray, rows: Sequence[int], count: int) -> list[list[tuple[int, float]]]:
    """For each of some rows the `count` others of the largest cosine, best first.

    Example:
        >>> nearest(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), [0], 1)[0][0][0]
        1
    """
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    cosines = unit[list(rows)] @ unit.T
    found = []
    for row, line in zip(rows, cosines, strict=True):
        line[row] = -np.inf
        best = np.argsort(-line, kind="stable")[:count]
        found.append([(int(one), float(line[one])) for one in best])
    return found


class EmbeddingView(View):
    """Two maps and a table of neighbours.

    Args:
        vectors: embeddings.
    """

    title = "Embeddings"
    order = 60

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.rows = list(dict.fromkeys(vectors.chosen))[:40]
        self.near = nearest(vectors.table, self.rows, NEIGHBOURS)
        around = [other for one in self.near for other, _ in one[:4]]
        self.shown = list(dict.fromkeys([*self.rows, *around]))
        self.flat, self.share = plane(vectors.table[self.shown])

    @classmethod
    def collect(cls, subject: Subject) -> "EmbeddingView | None":
        """Where there is a table of words."""
        vectors = subject.vectors
        if vectors is None or len(vectors.table) < 3 or not vectors.chosen:
            return None
        return cls(vectors)

    def blocks(self) -> list[Block]:
        """Static, in context, neighbours."""
        names = self.vectors.names
        blocks: list[Block] = [
            said(
                f"The table of embeddings on its two main axes (principal components, {self.share:.0%} of "
                "the spread of what is drawn): words of the text, and their nearest neighbours by cosine, "
                "fainter."
            ),
            _points(
                "Static", [names[n] for n in self.shown], self.flat, [n in set(self.rows) for n in self.shown]
            ),
        ]
        context = self.vectors.context
        if context is not None and len(context) > 2:
            flat, share = plane(context)
            blocks.append(
                said(
                    f"The same positions as the network reads them in this text ({share:.0%} of the spread)."
                )
            )
            blocks.append(_points("In context", self.vectors.pieces, flat, [True] * len(flat), joined=True))
        rows = [
            [names[row], ", ".join(f"{names[other]} {cosine:.2f}" for other, cosine in near)]
            for row, near in zip(self.rows, self.near, strict=True)
        ]
        return [*blocks, {"kind": "table", "head": ["word", "nearest, with cosine"], "rows": rows}]

    def table(self) -> Iterable[Sequence[object]]:
        """A row for each neighbour."""
        yield "word", "rank", "neighbour", "cosine"
        for row, near in zip(self.rows, self.near, strict=True):
            for rank, (other, cosine) in enumerate(near, 1):
                yield self.vectors.names[row], rank, self.vectors.names[other], cosine

    def figure(self) -> Figure:
        """The static map."""
        figure = Figure(figsize=(8, 6), dpi=100, facecolor="white")
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        given = set(self.rows)
        for row, (x, y) in zip(self.shown, self.flat.tolist(), strict=True):
            ours = row in given
            axes.plot(x, y, "o", color=BARS[0] if ours else FAINT, markersize=4 if ours else 2.5)
            word = printable(self.vectors.names[row])
            axes.annotate(
                word,
                (x, y),
                (3, 3),
                textcoords="offset points",
                fontsize=8,
                color=INK if ours else FAINT,
                parse_math=False,
            )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_title(
            f"Embeddings on two main axes ({self.share:.0%} of the spread)", fontsize=11, color=INK
        )
        return figure


def _points(
    title: str, names: Sequence[str], flat: np.ndarray, ours: Sequence[bool], *, joined: bool = False
) -> Block:
    return {
        "kind": "points",
        "title": title,
        "names": list(names),
        "x": [round(float(x), 4) for x in flat[:, 0]],
        "y": [round(float(y), 4) for y in flat[:, 1]],
        "ours": list(ours),
        "joined": joined,
    }
