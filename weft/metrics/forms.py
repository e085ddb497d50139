"""Scores of outputs and references in one Unicode form: é in two forms is two words for every metric.

Read next: metric.py.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from weft.metrics.metric import Metric


class ScoresInForm(NamedTuple):
    """The scores after the texts were brought into one form."""

    form: str  # "NFC" or "NFKC"
    lines: int  # references that were in another one
    total: int
    scores: Mapping[str, float]

    def line(self) -> str:
        """One line of a report."""
        shown = ", ".join(f"{name} {value:.1f}" for name, value in self.scores.items())
        return (
            f"  {self.lines:,} of {self.total:,} references are not in Unicode form {self.form}, as outputs "
            f"are; with all texts in {self.form}: {shown}"
        )


def scores_in_form(
    metrics: Mapping[str, Metric],
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    form: str = "nfc",
) -> ScoresInForm | None:
    r"""The scores in the form of the outputs; None if the references are in it already.

    Args:
        metrics: by the name they are shown with.
        outputs, references, sources: texts, a line for each.
        form: of the vocabulary; "none" counts as "nfc".

    Example:
        >>> from weft.metrics.wer import Wer
        >>> print(scores_in_form({"WER": Wer()}, ["\u00e9t\u00e9"], ["e\u0301te\u0301"]).line())
          1 of 1 references are not in Unicode form NFC, as outputs are; with all texts in NFC: WER 0.0
    """
    name: Literal["NFC", "NFKC"] = "NFKC" if form == "nfkc" else "NFC"
    lines = sum(not unicodedata.is_normalized(name, text) for text in references)
    if not lines:
        return None
    shaped = [
        None if texts is None else [unicodedata.normalize(name, text) for text in texts]
        for texts in (outputs, references, sources)
    ]
    scores = {key: metric.score(*shaped).value for key, metric in metrics.items()}  # type: ignore[arg-type]
    return ScoresInForm(name, lines, len(references), scores)
