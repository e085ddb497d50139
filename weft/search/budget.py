"""Limits of a search: settings have an upper bound, and a batch has a budget of tokens.

A recipe may come from a stranger; `max_extra: 100000000` must neither fill the memory nor run for days.
Read next: rollout.py and beam.py, which allocate memory for every token that they may write.
"""

from collections.abc import Mapping
from typing import Any

from weft.errors import ConfigError

TOKENS = 2**18
"""Tokens of one batch: sources, times hypotheses of each, times tokens that each of them may get."""

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
"""The largest value of each setting of a search; far above the needs of any task."""


def check_most(settings: Any) -> None:
    """Check that no setting is above its bound.

    Raises:
        ConfigError: names the first of them.
    """
    for name, most in MOST.items():
        value = getattr(settings, name, 0)
        if value > most:
            raise ConfigError(f"{name}: expected at most {most:,}, got {value:,}; give a smaller number")


def most_tokens(width: int) -> int:
    """How many tokens a hypothesis may have, given the number of hypotheses per source."""
    return max(1, TOKENS // width)


def most_rows(width: int, longest: int) -> int:
    """How many sources may be searched together."""
    return max(1, TOKENS // (width * longest))
