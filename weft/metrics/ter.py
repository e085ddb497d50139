"""Translation edit rate: the edits that turn an output into its reference, as sacrebleu counts them.

A shift of several words is one edit. Read next: wer.py, without shifts.
"""

from collections.abc import Sequence

import numpy as np
import sacrebleu

from weft.metrics.metric import SacrebleuMetric
from weft.metrics.wer import unspaced_note
from weft.words import writing


class Ter(SacrebleuMetric):
    """100 x edits / words of the references, over all lines; 0 is best.

    Args:
        normalized: split punctuation and symbols off words.
        no_punct: ignore punctuation.
        asian_support: split Chinese and Japanese characters, with `normalized`; by default both if the
            references are in these languages.
        case_sensitive: keep case.

    Source: Snover et al. 2006, "A Study of Translation Edit Rate with Targeted Human Annotation".

    Example:
        >>> round(Ter()(["the cat on the mat sat"], ["the cat sat on the mat"]).value, 2)
        16.67
    """

    name, higher_is_better = "TER", False

    def __init__(
        self,
        *,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self.no_punct, self.asian_support, self.case_sensitive = no_punct, asian_support, case_sensitive
        self._counter = sacrebleu.TER(normalized, no_punct, bool(asian_support), case_sensitive)

    def fitted(self, references: Sequence[str], *outputs: Sequence[str]) -> "Ter":
        if self.asian_support is None and writing(references) in ("chinese", "japanese"):
            return Ter(
                normalized=True,
                no_punct=self.no_punct,
                asian_support=True,
                case_sensitive=self.case_sensitive,
            )
        return self

    def note(self, references: Sequence[str]) -> str:
        return "" if self.fitted(references).asian_support else unspaced_note(self.name, references)

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., edits and words] to [...]; a reference without words makes every edit count as 100."""
        edits, words = totals[..., 0], totals[..., 1]
        return 100 * np.where(words > 0, edits / np.maximum(words, 1), edits > 0)
