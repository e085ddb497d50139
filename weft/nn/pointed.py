"""What a decoder that copies hands to a head that copies, for each step.

Read next: decoders/pointer.py, which looks at the source; heads/pointer.py, which says what comes next.
"""

from typing import NamedTuple

from torch import Tensor


class Read(NamedTuple):
    """The source's own symbols, shared by all hypotheses of a source."""

    tokens: Tensor | None  # [B, S] int64; V and more are words that the source lends; None where not known
    per_source = True


class Pointed(NamedTuple):
    """N = W B rows of T steps."""

    h: Tensor  # [N, T, D] features of what the vocabulary says
    gate: Tensor  # [N, T, 1] the logit of p_gen, the share of the vocabulary
    weights: Tensor  # [N, T, S] attention: what is copied otherwise
    again: Tensor | None  # [N, T, 1] cost of looking again, added in training; None without coverage
    source: Read
