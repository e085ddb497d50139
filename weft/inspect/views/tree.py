"""The search tree: all candidates of a beam search with rank, scores and outcome; the n best highlighted."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from weft.figures.axes import blank, legend, printable, shortened
from weft.figures.colours import BARS, FAINT, INK
from weft.figures.records import Figure
from weft.inspect.views.view import Block, View, said
from weft.run import LoadedRun
from weft.search.trace import FATES, Candidate
from weft.tasks.inspection import Inspection, SearchTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

COLOURS = dict(
    zip(
        ("kept", "finished", "pruned", "stopped", "cut"),
        (*BARS[:1], BARS[2], FAINT, BARS[1], BARS[3]),
        strict=True,
    )
)


LONGEST = 12  # maximum characters of a piece in the picture, unless pieces would look the same


class TreeView(View):
    """All candidates of a beam search."""

    title = "Search tree"
    order = 20

    def __init__(self, searched: SearchTree) -> None:
        self.searched = searched
        self.candidates: list[Candidate] = searched.trace.candidates

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "TreeView | None":
        if subject.searched is None or not subject.searched.trace.candidates:
            return None
        return cls(subject.searched)

    def lit(self) -> list[list[int]]:
        """For each of the n best, the indices of its candidates, first step first.

        A path is found by its tokens, following the parent of each candidate.
        """
        at = {(one.time, one.rank): number for number, one in enumerate(self.candidates)}
        by_slot = {
            (one.time, one.slot): number for number, one in enumerate(self.candidates) if one.slot >= 0
        }
        ways: dict[tuple[int, ...], list[int]] = {}  # by their tokens; the best one of equal ones
        for _, number in sorted(at.items()):
            if self.candidates[number].fate != "pruned":
                way = self._way(number, by_slot)
                ways.setdefault(tuple(self.candidates[one].token for one in way), way)
        return [ways.get(tuple(path), []) for path in self.searched.paths]

    def blocks(self) -> list[Block]:
        columns = {
            name: [one[place] for one in self.candidates]
            for place, name in enumerate(Candidate._fields)
            if name not in ("source", "fate", "token")
        }
        settings = self.searched.trace.settings
        assert settings is not None
        kinds = sorted({one.token for one in self.candidates})
        replayed = self.searched.trace.replay()[0]
        return [
            said(
                f"A beam of {settings.width}: at each step the {2 * settings.width} best candidates, the "
                "best on top. Blue was kept, green is finished, grey was pruned by its rank, orange was "
                "stopped because the best answer could no longer change. Click a hypothesis, or step "
                "through time."
            ),
            {
                "kind": "tree",
                **columns,
                "fate": [FATES.index(one.fate) for one in self.candidates],
                "fates": list(FATES),
                "token": [kinds.index(one.token) for one in self.candidates],
                "pieces": [self.searched.pieces[token] for token in kinds],
                "labels": shortened([self.searched.pieces[token] for token in kinds], 10),
                "paths": self.lit(),
                "hypotheses": [
                    {"text": self._text(one.tokens), "score": one.score, "logp": one.logp} for one in replayed
                ],
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "time", "rank", "parent", "piece", "token", "logp", "cumulative", "score", "slot", "fate"
        for one in self.candidates:
            piece = self.searched.pieces[one.token]
            yield one.time, one.rank, one.parent, piece, *one[3:4], *one[5:]

    def figure(self) -> "Figure":
        """The first steps, with kept candidates joined to their parents."""
        shown = [one for one in self.candidates if one.time <= 16]
        steps, ranks = max(one.time for one in shown), max(one.rank for one in shown) + 1
        figure = blank(max(6.0, 1.2 * steps), max(2.5, 0.34 * ranks), layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-0.1, steps + 0.2), ylim=(ranks - 0.3, -0.9), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        texts: dict[tuple[int, int], Text] = {}
        best = {number for way in self.lit()[:1] for number in way}
        labels = shortened([printable(self.searched.pieces[one.token]) for one in self.candidates], LONGEST)
        for number, one in enumerate(self.candidates):
            if one.time > 16:
                continue
            box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": COLOURS[one.fate]}
            box["linewidth"] = 1.8 if number in best else 0.8  # type: ignore[assignment]
            shade = FAINT if one.fate == "pruned" else INK
            texts[one.time, one.rank] = axes.text(
                one.time - 0.52,
                one.rank,
                labels[number],
                ha="center",
                va="center",
                fontsize=8,
                color=shade,
                bbox=box,
                parse_math=False,
            )
        self._join(figure, axes, texts, best)
        for time in range(1, steps + 1):
            words = f"step {time}" if time == 1 else str(time)
            axes.text(time - 0.52, -0.7, words, ha="center", fontsize=8, color=FAINT)
        fates = {one.fate: COLOURS[one.fate] for one in shown}
        signs = [
            axes.plot([], [], color=colour, linewidth=1.5, label=fate)[0] for fate, colour in fates.items()
        ]
        signs += axes.plot([], [], color=BARS[0], linewidth=3, label="best answer")
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": len(signs)}
        legend(axes, fontsize=9, handles=signs, **place)
        return figure

    def _join(
        self, figure: "Figure", axes: "Axes", texts: dict[tuple[int, int], "Text"], best: set[int]
    ) -> None:
        """Draw lines from parents to children that were not pruned; the boxes hide their ends."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from weft.figures.fonts import readable

        drawn, scale = FigureCanvasAgg(figure).get_renderer(), axes.transData.inverted()
        with readable(figure, keep_text=True):
            found = {place: text.get_window_extent(drawn) for place, text in texts.items()}
        sides = {place: scale.transform([(box.x0, 0), (box.x1, 0)])[:, 0] for place, box in found.items()}
        slots = {(one.time, one.slot): one for one in self.candidates if one.slot >= 0}
        for number, one in enumerate(self.candidates):
            parent = slots.get((one.time - 1, one.parent))
            if parent is None or one.fate == "pruned" or (one.time, one.rank) not in sides:
                continue
            lit = number in best
            ends = [sides[parent.time, parent.rank][1], sides[one.time, one.rank][0]]
            axes.plot(
                ends,
                [parent.rank, one.rank],
                color=BARS[0] if lit else FAINT,
                linewidth=1.8 if lit else 0.8,
                zorder=0.5 if lit else 0,
            )

    def _way(self, end: int, by_slot: dict[tuple[int, int], int]) -> list[int]:
        way = [end]
        while self.candidates[way[0]].time > 1:
            first = self.candidates[way[0]]
            way.insert(0, by_slot[first.time - 1, first.parent])
        return way

    def _text(self, tokens: Sequence[int]) -> str:
        """Join pieces into words, if word boundaries are marked."""
        settings = self.searched.trace.settings
        end = settings.eos if settings is not None else -1
        pieces = [self.searched.pieces.get(token, "?") for token in tokens if token != end]
        marked = any(piece.startswith("▁") for piece in pieces)
        return "".join(pieces).replace("▁", " ").strip() if marked else " ".join(pieces)
