"""Maps of embeddings: words with their nearest neighbours, alone and in context, and position encodings.

Read next: ../../nn/positions.py, ../../nn/distances.py.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import nn

from weft.figures.axes import blank, name_point
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.records import Figure, plane
from weft.inspect.views.view import Block, Matrix, View, chart, matrix, picture_of_lines, said, series
from weft.nn.distances import Alibi, Relative, Rotary
from weft.nn.positions import Concatenated, Learned, Sinusoidal, sinusoid
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection, ShownVectors
from weft.wording import plural

NEIGHBOURS = 6

WITHIN = 4  # number of neighbours in context, each with its sentence
ON_PAGE = 2  # number of these on the page; the CSV has all
SHOWN = 40  # maximum number of words of a text


def cosines(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cosines of rows [S, D] and rows [N, D], as [S, N].

    Example:
        >>> cosines(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[2.0, 0.0]])).tolist()
        [[1.0], [0.0]]
    """
    one, two = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (some, others)
    )
    return one @ two.T  # type: ignore[no-any-return]


def nearest(table: np.ndarray, rows: Sequence[int], count: int) -> list[list[tuple[int, float]]]:
    """For each of these rows, the `count` other rows with the largest cosine, best first."""
    alike = cosines(table[list(rows)], table)
    alike[np.arange(len(alike)), list(rows)] = -np.inf
    return largest(alike, count)


def largest(alike: np.ndarray, count: int) -> list[list[tuple[int, float]]]:
    """For each row of [S, N], the places and values of its `count` largest numbers, best first."""
    places = np.argsort(-alike, 1, kind="stable")[:, :count].tolist()
    return [[(one, float(row[one])) for one in best] for row, best in zip(alike, places, strict=True)]


class EmbeddingView(View):
    """Nearest words, with and without context."""

    title = "Embeddings"
    order = 60

    def __init__(self, vectors: ShownVectors) -> None:
        self.vectors = vectors
        self.rows = list(dict.fromkeys(vectors.chosen))[:SHOWN]
        self.near = nearest(vectors.table, self.rows, NEIGHBOURS)
        around = [other for one in self.near for other, _ in one[:4]]
        self.shown = list(dict.fromkeys([*self.rows, *around]))
        self.flat, self.share = plane(vectors.table[self.shown])
        self.within: list[list[tuple[int, float]]] = []
        if vectors.context is not None and vectors.around is not None:
            self.within = largest(cosines(vectors.context[:SHOWN], vectors.around.vectors), WITHIN)

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "EmbeddingView | None":
        vectors = subject.vectors
        if vectors is None or len(vectors.table) < 3 or not vectors.chosen:
            return None
        return cls(vectors)

    def blocks(self) -> list[Block]:
        names = self.vectors.names
        blocks: list[Block] = [
            said(
                f"Word embeddings on two principal components ({self.share:.0%} of the variance shown): "
                "words of the text and, fainter, their nearest neighbours by cosine."
            ),
            _points(
                "Static", [names[n] for n in self.shown], self.flat, [n in set(self.rows) for n in self.shown]
            ),
        ]
        rows = [
            [names[row], ", ".join(f"{names[other]} {cosine:.2f}" for other, cosine in near)]
            for row, near in zip(self.rows, self.near, strict=True)
        ]
        blocks.append({"kind": "table", "head": ["word", "nearest words alone, with cosine"], "rows": rows})
        return [*blocks, *self._in_context(), *self._alike()]

    def _in_context(self) -> list[Block]:
        """The map of the positions of the text, and their neighbours in other sentences."""
        vectors = self.vectors
        if vectors.context is None or len(vectors.context) < 3:
            return []
        pieces, count = list(vectors.pieces), len(vectors.context)
        beside = list(dict.fromkeys(other for near in self.within for other, _ in near[:1]))
        around = vectors.around
        shown = vectors.context
        if around is not None and beside:
            shown = np.concatenate([shown, around.vectors[beside]])
            pieces += [around.words[n] for n in beside]
        flat, share = plane(shown)
        blocks: list[Block] = [
            said(
                f"The same words in the context of this text ({share:.0%} of the variance shown)"
                + (" and, fainter, the nearest words of other sentences." if beside else ".")
            ),
            _points("In context", pieces, flat, [n < count for n in range(len(flat))], joined=not beside),
        ]
        if around is None or not self.within:
            return blocks
        rows = [
            [piece if not rank else "", f"{around.words[n]} {cosine:.2f}", around.sentences[around.where[n]]]
            for piece, near in zip(vectors.pieces, self.within, strict=False)
            for rank, (n, cosine) in enumerate(near[:ON_PAGE])
        ]
        texts = plural(len(around.sentences), "sentence")
        described = f"Nearest among the {plural(len(around.words), 'word')} of {texts}"
        return [
            *blocks,
            said(
                f"{described} from the validation data. For a word with several meanings, these are near the "
                "meaning used here."
            ),
            {"kind": "table", "head": ["word here", "nearest in context", "its sentence"], "rows": rows},
        ]

    def _alike(self) -> list[Block]:
        """Cosines between the words of the text, alone and in context."""
        vectors = self.vectors
        chosen, pieces = vectors.chosen[:SHOWN], list(vectors.pieces[:SHOWN])
        if len(chosen) < 2 or len(chosen) != len(pieces):
            return []
        static = vectors.table[chosen]
        items = [matrix("alone", cosines(static, static), pieces, pieces, low=-1.0)]
        if vectors.context is not None and len(vectors.context) >= len(pieces):
            own = vectors.context[: len(pieces)]
            items.append(matrix("in context", cosines(own, own), pieces, pieces, low=-1.0))
        groups = [{"name": "words", "items": items}]
        return [
            said(
                "Cosines between the words of the text. A word that occurs twice has one vector without "
                "context, but may have two in context."
            ),
            {"kind": "matrices", "pick": "cosines", "each": "vectors", "groups": groups},
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "word", "vector", "rank", "neighbour", "cosine", "sentence"
        for row, near in zip(self.rows, self.near, strict=True):
            for rank, (other, cosine) in enumerate(near, 1):
                yield self.vectors.names[row], "static", rank, self.vectors.names[other], cosine, ""
        around = self.vectors.around
        for piece, near in zip(self.vectors.pieces, self.within, strict=False):
            assert around is not None
            for rank, (other, cosine) in enumerate(near, 1):
                sentence = around.sentences[around.where[other]]
                yield piece, "in context", rank, around.words[other], cosine, sentence

    def figure(self) -> "Figure":
        figure = blank(8, 6, layout=None)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        given = set(self.rows)
        for row, (x, y) in zip(self.shown, self.flat.tolist(), strict=True):
            ours = row in given
            axes.plot(x, y, "o", color=BARS[0] if ours else FAINT, markersize=4 if ours else 2.5)
            name_point(axes, self.vectors.names[row], (x, y), color=INK if ours else FAINT)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.set_title(
            f"Embeddings on two principal components ({self.share:.0%} of the variance)",
            fontsize=11,
            color=INK,
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


COUNT = 64  # number of positions to compare
HEADS = 4


class PositionsView(View):
    """Position encodings."""

    title = "Positions"
    order = 55

    def __init__(self, own: Sequence[Matrix], others: Sequence[Matrix]) -> None:
        self.own, self.others = list(own), list(others)

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "PositionsView | None":
        own: dict[str, Matrix] = {}
        for name, module in opened.model.named_modules():
            found = _of(module, name.split(".")[0])
            if found is not None:
                own.setdefault(str(found["name"]), found)
        if not own:
            return None
        others = [_of(part, "compared") for part in (Sinusoidal(64), Rotary(32), Alibi(HEADS))]
        return cls(list(own.values()), [one for one in others if one is not None])

    def blocks(self) -> list[Block]:
        groups = [{"name": "this model", "items": self.own}, {"name": "for comparison", "items": self.others}]
        return [
            said(
                "The similarity of positions: the cosine of two encodings (sinusoidal, learned, rotary), or "
                "the bias added to attention scores (ALiBi, relative)."
            ),
            {"kind": "matrices", "pick": "encodings", "each": "kind", "groups": groups},
            self._lines(),
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "encoding", "position", "other", "value"
        for one in [*self.own, *self.others]:
            for (t, s), value in np.ndenumerate(one["values"]):
                yield one["name"], t, s, float(value)

    def figure(self) -> "Figure":
        return picture_of_lines([self._lines()])

    def _lines(self) -> Block:
        middle = COUNT // 2
        lines = []
        for one in [*self.own, *self.others]:
            values = one["values"][min(middle, len(one["values"]) - 1)]
            shown = values / max(1e-6, float(np.abs(values).max()))
            lines.append(
                series(one["name"], np.arange(len(values)) - middle, shown, dashed=one in self.others)
            )
        return chart(f"Seen from position {middle}", "distance", "relative to the maximum", lines)


@torch.no_grad()
def _of(module: nn.Module, part: str) -> Matrix | None:
    """The matrix of an encoding over all pairs of positions, or None."""
    whole = torch.arange(COUNT)
    like = torch.zeros(1)
    if isinstance(module, Concatenated):
        return None  # its sinusoid is a separate module
    if isinstance(module, Sinusoidal):
        return _similarities(
            f"{part}: sinusoidal", sinusoid(whole, module.size, module.base, dtype=torch.float64)
        )
    if isinstance(module, Learned):
        return _similarities(f"{part}: learned", module.table.weight[:COUNT].double().cpu())
    if isinstance(module, Rotary):
        turn = module(range(COUNT), range(COUNT), like).turn
        assert turn is not None
        angles = torch.cat([each.reshape(COUNT, -1) for each in turn], 1)
        return _similarities(f"{part}: rotary, of equal vectors", angles.double())
    if isinstance(module, Alibi | Relative):
        device = next(iter([*module.parameters(), *module.buffers()])).device
        bias = module(range(COUNT), range(COUNT), torch.zeros(1, device=device)).bias
        assert bias is not None
        values = bias[0].mean(0).float().cpu().numpy()
        kind = "ALiBi" if isinstance(module, Alibi) else "relative, learned"
        top = max(1e-6, float(np.abs(values).max()))
        names = [str(n) for n in range(COUNT)]
        return matrix(f"{part}: {kind}, mean over heads", values, names, names, low=-top, high=top)
    return None


def _similarities(name: str, vectors: torch.Tensor) -> Matrix:
    unit = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)
    names = [str(n) for n in range(len(vectors))]
    return matrix(name, (unit @ unit.T).numpy(), names, names, low=-1.0, high=1.0)
