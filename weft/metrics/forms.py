"""Scores of outputs and references in one Unicode form: é in two forms is two words for every metric.

Read next: metric.py.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from weft.metrics.metric import Metric
from weft.metrics.scored import of_lines


class ScoresInForm(NamedTuple):
    """The scores after the texts were brought into one form."""

    form: str  # "NFC" or "NFKC"
    lines: int  # references that were in another one
    total: int
    scores: Mapping[str, float]

    def line(self) -> str:
        """One line of a report."""
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in self.scores.items())
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

    Example:
        >>> from weft.metrics.wer import Wer
        >>> print(scores_in_form({"WER": Wer()}, ["\u00e9t\u00e9"], ["e\u0301te\u0301"]).line())
          1 of 1 references are not in Unicode form NFC, as outputs are; with all texts in NFC: WER 0.0
    """
    lines = not_in_form(references, form)
    if not lines:
        return None
    shaped = [None if texts is None else in_form(texts, form) for texts in (outputs, references, sources)]
    compared = of_lines(*shaped)  # type: ignore[arg-type]
    scores = {key: compared.value(metric) for key, metric in metrics.items()}
    return ScoresInForm(form_name(form), lines, len(references), scores)


def not_in_form(texts: Iterable[str], form: str) -> int:
    """The number of texts that are in another form than the outputs of a vocabulary."""
    return sum(not unicodedata.is_normalized(form_name(form), text) for text in texts)


def in_form(texts: Iterable[str], form: str) -> list[str]:
    """The texts in the form of the outputs of a vocabulary."""
    return [unicodedata.normalize(form_name(form), text) for text in texts]


def form_name(form: str) -> Literal["NFC", "NFKC"]:
    """The Unicode form of a vocabulary's outputs."""
    return "NFKC" if form == "nfkc" else "NFC"


def _shown(value: float) -> str:
    return f"{value:.1f}" if value == 0 or value > 1 else f"{value:.3f}"
