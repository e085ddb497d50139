"""Translation edit rate: the edits that turn an output into its reference, as sacrebleu counts them.

A shift of several words is one edit. Read next: wer.py, without shifts.
"""

import numpy as np
import sacrebleu

from weft.metrics.metric import SacrebleuMetric


class Ter(SacrebleuMetric):
    """100 x edits / words of the references, over all lines; 0 is best.

    Args:
        normalized: split punctuation and symbols off words.
        no_punct: ignore punctuation.
        asian_support: split Chinese and Japanese characters.
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
        asian_support: bool = False,
        case_sensitive: bool = False,
    ) -> None:
        self._counter = sacrebleu.TER(
            normalized=normalized,
            no_punct=no_punct,
            asian_support=asian_support,
            case_sensitive=case_sensitive,
        )

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., edits and words] to [...]; a reference without words makes every edit count as 100."""
        edits, words = totals[..., 0], totals[..., 1]
        return 100 * np.where(words > 0, edits / np.maximum(words, 1), edits > 0)
