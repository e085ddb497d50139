"""The words of an answer that a pointer network copied from the source, and those it generated."""

from weft.inspect.views.words import ColouredWords
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

SENTENCE = (
    "Each word of the best answer, coloured by the share of its probability that is copied from the source: "
    "dark words were copied, white ones were generated from the vocabulary. Alignment shows where they come "
    "from."
)
CAPTION = "Share of each word's probability that is copied from the source, in per cent"


class CopiedView(ColouredWords):
    """The best answer with its end symbol, darker where it was copied: from 0 (generated) to 1 (copied)."""

    title = "Copied words"
    order = 11
    quantity = "share copied"
    top = 1.0

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "CopiedView | None":
        """The view, if the model can copy."""
        if subject.copied is None:
            return None
        return cls(subject.hypotheses[0].pieces, subject.copied, SENTENCE, CAPTION)
