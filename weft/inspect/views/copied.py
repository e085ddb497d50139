"""The words of an answer that a pointer network copied from the source, and those it generated."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weft.inspect.views.view import Block, View, said
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHAT = "the share of its probability that is copied from the source"


class CopiedView(View):
    """The answer, darker where it was copied.

    Args:
        pieces: pieces of the best answer, including the end symbol.
        shares: copied share of each, from 0 (generated) to 1 (copied).
        text: the answer.
    """

    title = "Copied words"
    order = 11

    def __init__(self, pieces: Sequence[str], shares: np.ndarray, text: str) -> None:
        self.pieces, self.shares, self.text = pieces, shares, text

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "CopiedView | None":
        """The view, if the model can copy."""
        if subject.copied is None:
            return None
        best = subject.hypotheses[0]
        return cls(best.pieces, subject.copied, best.text)

    def blocks(self) -> list[Block]:
        """The answer, darker where more was copied."""
        return [
            said(
                f"Each word of the best answer, coloured by {WHAT}: dark words were "
                "copied, white ones were generated from the vocabulary. Alignment shows where they come from."
            ),
            {
                "kind": "words",
                "words": list(self.pieces),
                "weights": [round(float(share), 5) for share in self.shares],
                "top": 1.0,
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "position", "word", "share copied"
        for place, (piece, share) in enumerate(zip(self.pieces, self.shares.tolist(), strict=True), 1):
            yield place, piece, share

    def figure(self) -> "Figure":
        from weft.figures.coloured import coloured_text

        title = "Share of each word's probability that is copied from the source, in per cent"
        return coloured_text(self.pieces, self.shares, title=title, top=1.0)
