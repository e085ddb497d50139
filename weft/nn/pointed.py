"""The output of a copying decoder and input of a copying head.

Read next: decoders/pointer.py, which attends to the source; heads/pointer.py, which predicts.
"""

from typing import NamedTuple

from torch import Tensor


class CopySource(NamedTuple):
    """The source symbols, shared by all hypotheses of a source."""

    tokens: Tensor | None  # [B, S] int64; V and above are unknown source words; None if not known
    per_source = True


class PointerFeatures(NamedTuple):
    """N = W B rows of T steps."""

    h: Tensor  # [N, T, D] features for the vocabulary's distribution
    gate: Tensor  # [N, T, 1] logit of p_gen, the probability of generating
    weights: Tensor  # [N, T, S] attention, the copy distribution
    again: Tensor | None  # [N, T, 1] coverage loss; None without coverage
    source: CopySource
