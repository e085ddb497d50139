"""Cut the texts or sentences of one file into splits: at random, by group, or by time.

Read next: grouped.py.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from weft.data.labelled import Labelled
from weft.errors import ConfigError, DataError
from weft.tasks.shared.labels.grouped import by_group, by_time, time_of
from weft.tasks.shared.labels.splits import parts
from weft.tasks.task import Split


def check_columns(
    group: str | None, time: str | None, folds: int, fold: int, hold_out: int, seed: int | None
) -> None:
    """Check that the names of groups and times fit the other settings.

    Raises:
        ConfigError: they do not; the message starts with the name of a setting.
    """
    for name, column in (("group", group), ("time", time)):
        if column is not None and not (folds or hold_out):
            raise ConfigError(f"{name}: needs hold_out or folds; set one of them, or leave it out")
    if group is not None and time is not None:
        raise ConfigError("group: cannot be combined with time; leave one out")
    if time is not None and seed is not None:
        raise ConfigError("split_seed: with time nothing is shuffled; set it to null or leave it out")
    if time is not None and folds and not fold:
        raise ConfigError("fold: expected at least 1 with time, as nothing is older than part 0, got 0")


def cut_texts(
    texts: Sequence[Labelled],
    path: Path,
    *,
    group: str | None,
    time: str | None,
    folds: int,
    fold: int,
    hold_out: int,
    seed: int | None,
) -> Sequence[Split | None]:
    """The split of each text; None for one that is newer than the tested part.

    Args:
        texts: of the file.
        path: the file, for errors.
        group, time, folds, fold, hold_out, seed: see LabelData.

    Raises:
        DataError: a cell of the column is missing, empty or no time.
    """
    check_enough(len(texts), "texts", folds, path)
    if time is not None:
        times = [_time(number, cell, path, time) for number, cell in _cells(texts, path, time, "time")]
        return by_time(times, folds=folds, fold=fold, hold_out=hold_out)
    groups = None if group is None else [cell for _, cell in _cells(texts, path, group, "group")]
    labels = [one.label for one in texts]
    return cut(labels, path, groups, str(group), folds=folds, fold=fold, hold_out=hold_out, seed=seed)


def cut(
    labels: Sequence[str],
    path: Path,
    groups: Sequence[str] | None,
    name: str,
    *,
    folds: int,
    fold: int,
    hold_out: int,
    seed: int | None,
) -> Sequence[Split]:
    """The split of each example.

    Args:
        labels: of the examples; all equal if there are none.
        path: the file, for errors.
        groups: of the examples, which stay in one part; None for single examples.
        name: of the groups.
        folds, fold, hold_out, seed: see LabelData.

    Raises:
        DataError: there are fewer groups than folds.
    """
    if groups is None:
        return parts(labels, folds=folds, fold=fold, hold_out=hold_out, seed=seed)
    check_enough(len(set(groups)), f"values of {name} (data.group)", folds, path)
    seed = 1 if seed is None else seed
    return by_group(labels, groups, folds=folds, fold=fold, hold_out=hold_out, seed=seed)


def said(folds: int, fold: int, seed: int | None, by: str | None) -> str:
    """How a fold was cut, for the name of a test part: fold 3 of 10 (split seed 1) by customer."""
    shuffled = "" if seed is None else f" (split seed {seed})"
    return f"fold {fold} of {folds}{shuffled}" + (f" by {by}" if by else "")


def check_enough(count: int, what: str, folds: int, path: Path) -> None:
    """Check that every fold gets something.

    Raises:
        DataError: it does not.
    """
    if count < folds:
        raise DataError(
            f"{path}: expected at least {folds} {what}, one per fold, got {count}; use fewer data.folds"
        )


def _cells(texts: Sequence[Labelled], path: Path, column: str, name: str) -> Iterator[tuple[int, str]]:
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
