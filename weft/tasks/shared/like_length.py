"""Groups rows of similar length, so that batches have little padding."""

from collections.abc import Callable, Iterator, Sequence


def groups(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The numbers of the rows, shortest first, in groups of at most `most` positions.

    Args:
        lengths: of the rows.
        most: maximum positions per group, with padding; a longer row is a group of its own.

    Example:
        >>> list(groups([3, 1, 2, 9], most=4))
        [[1, 2], [0], [3]]
    """
    return _cut(lengths, lambda rows, longest, following: max(1, following) * (rows + 1) > most)


def filled(lengths: Sequence[int], least: int) -> Iterator[list[int]]:
    """Like `groups`, but each group ends once it has `least` positions.

    Example:
        >>> list(filled([3, 1, 2, 9], least=4))
        [[1, 2], [0, 3]]
    """
    return _cut(lengths, lambda rows, longest, following: longest * rows >= least)


def _cut(lengths: Sequence[int], closed: Callable[[int, int, int], bool]) -> Iterator[list[int]]:
    order = sorted(range(len(lengths)), key=lambda number: lengths[number])
    group: list[int] = []
    for number, following in zip(order, [*order[1:], None], strict=True):
        group.append(number)
        if following is None or closed(len(group), lengths[number], lengths[following]):
            yield group
            group = []
