"""Parts of one file that keep groups together, or that follow time. Read next: splits.py."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from weft.data.split import rank
from weft.tasks.task import Split


def by_group(
    labels: Sequence[str], groups: Sequence[str], *, folds: int, fold: int, hold_out: int, seed: int
) -> list[Split]:
    """The split of each example; all examples of a group have the same one.

    Groups are dealt out one by one, large ones first, each to the part whose classes it evens out best.

    Args:
        labels: of the examples.
        groups: of the examples, such as customers.
        folds, fold: the number of folds of a cross-validation, and the one that is tested; 0 for none.
        hold_out: 10 holds out about a tenth of the other examples for validation; 0 holds out none.
        seed: of the order of groups of equal size.

    Example:
        >>> by_group("abab", ["x", "x", "y", "z"], folds=0, fold=0, hold_out=2, seed=1)
        ['valid', 'valid', 'train', 'train']
    """
    found: list[Split] = ["train"] * len(labels)
    rest = list(range(len(labels)))
    if folds:
        dealt = _dealt(labels, groups, rest, folds, seed)
        for number in rest:
            found[number] = "test" if dealt[groups[number]] == fold else "train"
        rest = [number for number in rest if found[number] == "train"]
    if hold_out:
        dealt = _dealt(labels, groups, rest, hold_out, seed + 1)
        for number in rest:
            found[number] = "valid" if dealt[groups[number]] == 0 else "train"
    return found


def by_time(times: Sequence[float], *, folds: int, fold: int, hold_out: int) -> list[Split | None]:
    """The split of each example; validation follows training in time, and the test follows both.

    Args:
        times: of the examples, as numbers.
        folds, fold: cut time into this many parts of equal size, test on part `fold` (from 1), and train on
            the parts before it; later examples belong to no split. 0 for no test part.
        hold_out: 10 takes the newest tenth of the other examples for validation; 0 takes none.

    Example:
        >>> by_time([5, 1, 4, 2, 3, 6], folds=3, fold=1, hold_out=2)
        [None, 'train', 'test', 'valid', 'test', None]
    """
    order = sorted(range(len(times)), key=lambda number: times[number])
    found: list[Split | None] = ["train"] * len(times)
    if folds:
        begin, end = (len(order) * place // folds for place in (fold, fold + 1))
        for number in order[begin:end]:
            found[number] = "test"
        for number in order[end:]:
            found[number] = None
        order = order[:begin]
    for number in order[len(order) - math.ceil(len(order) / hold_out) :] if hold_out else ():
        found[number] = "valid"
    return found


def time_of(text: str) -> float:
    """A date, a date with a time (ISO 8601) or a number, as a number; a time without a zone is in UTC.

    Raises:
        ValueError: it is neither.

    Example:
        >>> time_of("1970-01-02"), time_of("1970-01-01T01:00+01:00"), time_of("2019")
        (86400.0, 0.0, 2019.0)
    """
    try:
        value = float(text)
    except ValueError:
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _dealt(
    labels: Sequence[str], groups: Sequence[str], numbers: Sequence[int], count: int, seed: int
) -> dict[str, int]:
    """The part of each group: the one where its classes have the smallest share so far."""
    members: dict[str, Counter[str]] = {}
    for number in numbers:
        members.setdefault(groups[number], Counter())[labels[number]] += 1
    total = Counter(labels[number] for number in numbers)
    turn = {group: rank(place, seed) for place, group in enumerate(sorted(members))}
    parts: list[Counter[str]] = [Counter() for _ in range(count)]
    found = {}
    for group in sorted(members, key=lambda one: (-members[one].total(), turn[one])):
        own = members[group]
        growth = [
            sum(n * (2 * part[label] + n) / total[label] ** 2 for label, n in own.items()) for part in parts
        ]
        place = min(range(count), key=lambda part: (growth[part], parts[part].total(), part))
        parts[place].update(own)
        found[group] = place
    return found
