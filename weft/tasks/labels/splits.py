"""Splits of one file: a held-out validation part, folds of a cross-validation.

With a seed, the examples are shuffled and every class is distributed evenly over the parts. Without one,
the line number decides, as in older recipes, and a sorted file gives unequal parts.
The parts depend only on the labels and the seed, not on model or processor. Groups of examples may stay
together, and the parts may follow time. Read next: ../../data/several.py.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from weft.data.labelled import LabelledExample
from weft.data.several import rank
from weft.errors import ConfigError, DataError
from weft.tasks.task import Split
from weft.wording import plural

ENOUGH = 1068
"""Number of texts whose accuracy has a 95 % interval of at most ±3 points."""

FEW = 3  # examples of a class that is nearly empty


class HeldOut(NamedTuple):
    """How validation and test part are cut out of a training file; see LabelData."""

    folds: int = 0
    fold: int = 0
    hold_out: int = 0
    seed: int | None = None  # None takes every k-th example
    group: str | None = None  # None for single examples
    time: str | None = None

    def said(self) -> str:
        """How a fold was cut, for the name of a test part: fold 3 of 10 (split seed 1) by customer."""
        shuffled = "" if self.seed is None else f" (split seed {self.seed})"
        by = self.group or self.time
        return f"fold {self.fold} of {self.folds}{shuffled}" + (f" by {by}" if by else "")


def parts(labels: Sequence[str], how: HeldOut) -> list[Split]:
    """The split of each example."""
    if how.seed is None:
        return [part_of(number, how) for number in range(len(labels))]
    found: list[Split] = ["train"] * len(labels)
    rest = []
    for place, number in enumerate(_dealt(labels, how.seed)):
        if how.folds and place % how.folds == how.fold:
            found[number] = "test"
        else:
            rest.append(number)
    left = Counter(labels[number] for number in rest)
    shared = [number for number in rest if left[labels[number]] > 1]  # the only one of a class is trained on
    for number in shared[:: how.hold_out] if how.hold_out else ():
        found[number] = "valid"
    return found


def _dealt(labels: Sequence[str], seed: int) -> list[int]:
    """Example numbers by class, shuffled within each class; dealing them out gives each part its share."""
    classes = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return sorted(range(len(labels)), key=lambda number: (classes[labels[number]], rank(number, seed)))


def part_of(number: int, how: HeldOut) -> Split:
    """The split of an example by its number alone."""
    folds, fold, hold_out = how[:3]
    if folds:
        if number % folds == fold:
            return "test"
        number = number // folds * (folds - 1) + number % folds - (number % folds > fold)
    return "valid" if hold_out and number % hold_out == 0 else "train"


def check_classes(labels: Sequence[str], part: str, *, cut: bool, seed: int | None) -> None:
    """Check that a part of the data has more than one class."""
    if len(set(labels)) > 1:
        return
    remedy = "give examples of other classes too"
    if cut:
        remedy = "set data.split_seed: 1, which shuffles before it splits, or give a validation file"
    if cut and seed is not None:
        remedy = "hold more examples out (a smaller data.hold_out), or give a validation file"
    what = f", all {labels[0]!r}" if labels else ""
    raise DataError(
        f"{part}: expected two classes or more, got {plural(len(labels), 'example')}{what}; {remedy}"
    )


def can_hold_out(labels: Sequence[str], hold_out: int) -> bool:
    """Whether every `hold_out`-th example, shuffled within the classes, is of two classes or more.

    Example:
        >>> can_hold_out(["a", "b"] * 5, 5), can_hold_out(["a", "b"] * 5, 10)
        (True, False)
    """
    found = parts(labels, HeldOut(hold_out=hold_out, seed=1))
    return len({label for label, part in zip(labels, found, strict=True) if part == "valid"}) > 1


def thinly_held_out(counts: Mapping[str, int], hold_out: int, remedy: str) -> str:
    """Which classes have fewer than FEW of every `hold_out` examples, shuffled within classes; "" if none.

    Example:
        >>> thinly_held_out({"a": 100, "b": 6}, 5, "add some")
        "held out for validation: 2 of 6 of the class 'b', so scores there say little about it; add some"
    """
    labels = [label for label, count in counts.items() for _ in range(count)]
    found = zip(labels, parts(labels, HeldOut(hold_out=hold_out, seed=1)), strict=True)
    kept = Counter(label for label, part in found if part == "valid")
    said = _thin({f"{counts[one]:,} of the class {one!r}": kept[one] for one in counts}, remedy)
    return f"held out for validation: {said}" if said else ""


def thinly_scored(classes: Iterable[str], counts: Mapping[str, int], remedy: str) -> str:
    """Which classes have fewer than FEW examples in a file to score by; "" if none.

    Example:
        >>> thinly_scored("abc", {"b": 2, "c": 7}, "add some")
        "0 of the class 'a', 2 of the class 'b', so scores there say little about them; add some"
    """
    return _thin({f"the class {one!r}": counts.get(one, 0) for one in classes}, remedy)


def _thin(counts: Mapping[str, int], remedy: str) -> str:
    thin = [f"{count} of {name}" for name, count in counts.items() if count < FEW]
    if not thin:
        return ""
    more = f" and few of {plural(len(thin) - 3, 'other class')}" if len(thin) > 3 else ""
    which = "it" if len(thin) == 1 else "them"
    return f"{', '.join(thin[:3])}{more}, so scores there say little about {which}; {remedy}"


def few(count: int, what: str) -> str:
    """What is wrong with a file of which nothing can be held out, see `can_hold_out`."""
    wanted = f"enough {what} to hold some of two classes out for validation"
    return f"expected {wanted}, got {count}; give more, or a validation file"


def held_out(total: int) -> int:
    """The hold_out that keeps ENOUGH of `total` texts: at most a fifth and at least a tenth of them."""
    return min(10, max(5, total // ENOUGH))


def small_validation(valid: int, train: int, *, cut: bool) -> str | None:
    """A warning about a validation part that is too small to choose a checkpoint; None if it is not.

    The interval of an accuracy on n texts is ±1.96 sqrt(p (1 - p) / n), which is largest for p = 1/2.
    """
    if valid >= ENOUGH:
        return None
    points = 100 * 1.96 * 0.5 / max(1, valid) ** 0.5
    every = held_out(valid + train)
    more = (valid + train) // every
    hint = f"data.hold_out: {every} would keep {more:,}; " if cut and more > valid else ""
    return (
        f"validation texts: {valid:,}, so their accuracy is known to ±{points:.1f} points; {ENOUGH:,} would "
        f"make it ±3; {hint}training.metric: loss varies less than accuracy"
    )


def check_parts(how: HeldOut, *, valid: bool, test: bool) -> None:
    """Check that the settings fit together."""
    folds, fold, hold_out, seed, group, time = how
    if folds < 0 or folds == 1:
        raise ConfigError(f"folds: expected 0 for none or at least 2, got {folds}; 10 makes ten parts")
    if fold and not folds:
        raise ConfigError("fold: needs folds; set it, or leave fold out")
    if not 0 <= fold < max(1, folds):
        raise ConfigError(f"fold: expected a number from 0 to {folds - 1}, got {fold}")
    if hold_out < 0 or hold_out == 1:
        raise ConfigError(
            f"hold_out: expected 0 for none or at least 2, got {hold_out}; 10 keeps a tenth for validation"
        )
    if seed is not None and seed < 0:
        raise ConfigError(f"split_seed: expected at least 0, got {seed}")
    if seed is not None and not folds and not hold_out:
        raise ConfigError("split_seed: needs hold_out or folds; set one of them, or leave it out")
    if folds and test:
        raise ConfigError("folds: cannot be combined with a test file; leave one out")
    if hold_out and valid:
        raise ConfigError("hold_out: cannot be combined with validation files; leave one out")
    if not hold_out and not valid:
        raise ConfigError(
            "valid: expected validation files in addition to train; or set hold_out: 10 and split_seed: 1 to "
            "hold out a tenth of the training examples for validation"
        )
    for name, column in (("group", group), ("time", time)):
        if column is not None and not (folds or hold_out):
            raise ConfigError(f"{name}: needs hold_out or folds; set one of them, or leave it out")
    if group is not None and time is not None:
        raise ConfigError("group: cannot be combined with time; leave one out")
    if time is not None and seed is not None:
        raise ConfigError("split_seed: with time nothing is shuffled; set it to null or leave it out")
    if time is not None and folds and not fold:
        raise ConfigError("fold: expected at least 1 with time, as nothing is older than part 0, got 0")


def by_group(labels: Sequence[str], groups: Sequence[str], how: HeldOut) -> list[Split]:
    """The split of each example; all examples of a group have the same one.

    Groups are dealt out one by one, large ones first, each to the part whose classes it evens out best.
    """
    found: list[Split] = ["train"] * len(labels)
    seed = 1 if how.seed is None else how.seed
    stages: list[tuple[Split, int, int]] = [("test", how.folds, how.fold), ("valid", how.hold_out, 0)]
    for turn, (part, count, chosen) in enumerate(stages):
        rest = [number for number, one in enumerate(found) if one == "train"]
        dealt = _dealt_groups(labels, groups, rest, count, seed + turn) if count else {}
        for number in rest:
            found[number] = part if dealt.get(groups[number]) == chosen else "train"
    return found


def by_time(times: Sequence[float], how: HeldOut) -> list[Split | None]:
    """The split of each example; validation follows training in time, and the test follows both."""
    folds, fold, hold_out = how[:3]
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
    """A date, a date with a time (ISO 8601) or a number, as a number; a time without a zone is in UTC."""
    try:
        value = float(text)
    except ValueError:
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _dealt_groups(
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


def cut_texts(texts: Sequence[LabelledExample], path: Path, how: HeldOut) -> Sequence[Split | None]:
    """The split of each text; None for one that is newer than the tested part."""
    check_enough(len(texts), "texts", how.folds, path)
    if how.time is not None:
        cells = _cells(texts, path, how.time, "time")
        return by_time([_time(number, cell, path, how.time) for number, cell in cells], how)
    groups = None if how.group is None else [cell for _, cell in _cells(texts, path, how.group, "group")]
    return cut([one.label for one in texts], path, groups, how)


def cut(labels: Sequence[str], path: Path, groups: Sequence[str] | None, how: HeldOut) -> Sequence[Split]:
    """The split of each example."""
    if groups is None:
        return parts(labels, how)
    check_enough(len(set(groups)), f"values of {how.group} (data.group)", how.folds, path)
    return by_group(labels, groups, how)


def check_enough(count: int, what: str, folds: int, path: Path) -> None:
    """Check that every fold gets something."""
    if count < folds:
        raise DataError(
            f"{path}: expected at least {folds} {what}, one per fold, got {count}; use fewer data.folds"
        )


def _cells(texts: Sequence[LabelledExample], path: Path, column: str, name: str) -> Iterator[tuple[int, str]]:
    for one in texts:
        cell = one.cells.get(column, "").strip()
        if not cell:
            has = f"missing; the file has {', '.join(one.cells) or 'no columns'}"
            why = "empty; fill the cell" if column in one.cells else has
            line = one.number if column in one.cells else 1
            raise DataError(f"column {column!r} (data.{name}) is {why}", path=path, line=line)
        yield one.number, cell


def _time(number: int, cell: str, path: Path, column: str) -> float:
    try:
        return time_of(cell)
    except (ValueError, OverflowError):
        raise DataError(
            f"expected a date such as 2026-01-31 or a number in column {column} (data.time), got "
            f"{cell[:40]!r}; correct the cell",
            path=path,
            line=number,
        ) from None
