"""Limits of a search: an upper bound for each setting, and a budget of tokens per batch.

A recipe may be untrusted; `max_extra: 100000000` must neither exhaust the memory nor run for days.
Read next: rollout.py and beam.py, which allocate memory for the maximum number of tokens.
"""

from collections.abc import Mapping
from typing import Any

from weft.errors import ConfigError

TOKENS = 2**18
"""Maximum of sources * hypotheses per source * maximum tokens per hypothesis in one batch."""

MOST: Mapping[str, int] = {
    "beam": 1_000,
    "nbest": 1_000,
    "diverse": 1_000,
    "batch_rows": 10_000,
    "max_ratio": 1_000,
    "max_extra": 100_000,
    "max_tokens": 100_000,
    "min_length": 100_000,
    "max_lines": 100_000,
    "no_repeat_ngram": 100_000,
}
"""The maximum of each search setting; far above the needs of any task."""


def check_most(settings: Any) -> None:
    """Check that no setting is above its bound.

    Raises:
        ConfigError: a setting is above its bound; the first one is named.
    """
    for name, most in MOST.items():
        value = getattr(settings, name, 0)
        if value > most:
            raise ConfigError(f"{name}: expected at most {most:,}, got {value:,}; give a smaller number")


def most_tokens(width: int) -> int:
    """Maximum tokens of a hypothesis, given the number of hypotheses per source."""
    return max(1, TOKENS // width)


def most_rows(width: int, longest: int) -> int:
    """Maximum number of sources in one batch."""
    return max(1, TOKENS // (width * longest))
