"""Limits of a search: the range of each setting, and a budget of tokens per batch.

A recipe may be untrusted; `max_extra: 100000000` must neither exhaust the memory nor run for days.
Read next: rollout.py and beam.py, which allocate memory for the maximum number of tokens.
"""

import math
from typing import Annotated

from weft.setting_types import Bounds

TOKENS = 2**18
"""Maximum of sources * hypotheses per source * maximum tokens per hypothesis in one batch."""

BeamWidth = Annotated[int, Bounds(ge=1, le=1_000)]
"""Hypotheses kept, or texts written, for a source."""

BatchRows = Annotated[int, Bounds(ge=1, le=10_000)]
"""Sources in a batch."""

TokenCount = Annotated[int, Bounds(ge=0, le=100_000)]
OneOrMore = Annotated[int, Bounds(ge=1, le=100_000)]
LengthPenalty = Annotated[float, Bounds(ge=0, le=10)]
Temperature = Annotated[float, Bounds(gt=0, lt=math.inf)]
TopP = Annotated[float, Bounds(gt=0, le=1)]


def most_tokens(width: int) -> int:
    """Maximum tokens of a hypothesis, given the number of hypotheses per source."""
    return max(1, TOKENS // width)


def most_rows(width: int, longest: int) -> int:
    """Maximum number of sources in one batch."""
    return max(1, TOKENS // (width * longest))
