"""Which words of an answer a pointer copied from its source, and which it wrote itself."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weft.inspect.views.view import Block, View, said
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Inspected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHAT = "the share of its probability that came from the source"


class CopiedView(View):
    """The answer, darker where it was copied.

    Args:
        pieces: of the best answer, the end symbol too.
        shares: of each, from 0 (written) to 1 (copied).
        text: the answer.
    """

    title = "Copied words"
    order = 11

    def __init__(self, pieces: Sequence[str], shares: np.ndarray, text: str) -> None:
        self.pieces, self.shares, self.text = pieces, shares, text

    @classmethod
    def collect(cls, opened: Opened, subject: Inspected) -> "CopiedView | None":
        """Where a model can copy."""
        if subject.copied is None:
            return None
        best = subject.hypotheses[0]
        return cls(best.pieces, subject.copied, best.text)

    def blocks(self) -> list[Block]:
        """The answer, the darker the more of it was copied."""
        return [
            said(
                f"Each word of the best answer, coloured by {WHAT}: dark was copied, white "
                "was written out of the vocabulary. Alignment shows where it stood."
            ),
            {
                "kind": "words",
                "words": list(self.pieces),
                "weights": [round(float(share), 5) for share in self.shares],
                "top": 1.0,
            },
        ]

    def table(self) -> Iterable[Sequence[object]]:
        """A row for each word."""
        yield "position", "word", "share copied"
        for place, (piece, share) in enumerate(zip(self.pieces, self.shares.tolist(), strict=True), 1):
            yield place, piece, share

    def figure(self) -> "Figure":
        """The coloured answer."""
        from weft.figures.coloured import coloured_text

        title = "What was copied from the source, in per cent of each word's probability"
        return coloured_text(self.pieces, self.shares, title=title, top=1.0)
