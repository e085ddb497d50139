"""Chooses the pairs to score: those with text on both sides, as in training. Read next: evaluation.py."""

from collections.abc import Sequence

from weft.data.parallel import complete
from weft.errors import DataError


def scorable(sources: Sequence[str], references: Sequence[str], title: str) -> list[int]:
    """The numbers of the pairs that can be scored.

    Raises:
        DataError: no pair can be scored.
    """
    kept = complete(sources, references)
    if not kept:
        raise DataError(
            f"{title}: expected pairs with text on both sides, got {len(sources):,} pairs, each without a "
            "source or a reference; give both"
        )
    return kept


def counted(kept: int, left_out: int, what: str) -> str:
    """The number of scored pairs, for a title.

    Example:
        >>> counted(748, 110, "pairs"), counted(3, 0, "pairs")
        ('748 pairs (110 more have an empty side and are left out)', '3 pairs')
    """
    more = f" ({left_out:,} more have an empty side and are left out)" if left_out else ""
    return f"{kept:,} {what}{more}"


def aligned(outputs: Sequence[str], kept: Sequence[int], count: int) -> list[str]:
    """A line for each pair of the data, an empty one if the pair was left out."""
    lines = [""] * count
    for number, output in zip(kept, outputs, strict=True):
        lines[number] = output
    return lines
