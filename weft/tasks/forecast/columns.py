"""The role of each column in a table of series: named by the user or guessed from its values."""

from pathlib import Path

from weft.data.guess import columns_of, series_of
from weft.data.series import LONG, Columns, read_rows
from weft.errors import ConfigError


def guessed(path: Path, which: Columns, *, check: bool = False) -> tuple[Columns, str]:
    """Columns that the user did not name are guessed from their values; a sentence says which.

    A table with unique_id, ds and y needs no guess.

    Args:
        path: the table.
        which: the columns that the user names.
        check: read every numeric column of a table that names its series; otherwise one must be named.

    Raises:
        DataError: the table cannot be read.
    """
    header = [name.lower() for name in read_rows(path)[0]]
    if path.suffix == ".parquet" or (all(name in header for name in LONG) and not which.targets):
        return which, ""
    said = {which.time, which.id, *which.known, *which.past}
    found = series_of([one for one in columns_of(path) if one.name not in said - {None, which.time}])
    if found is None:
        return which, ""
    name, time = which.id or found.id, which.time or found.time
    targets = which.targets or (found.targets if name or found.left else ())
    if name and check and len(targets) > 1:
        which = which._replace(past=(*which.past, *targets[1:]))
        targets = targets[:1]
    if name and len(targets) != 1:
        raise ConfigError(
            f"{path}: expected one column of values next to the series' names ({name}), got "
            f"{', '.join(targets)[:200]}; name it with --target, and the others with --known or --past"
        )
    kept = which._replace(time=time, id=name, targets=tuple(targets))
    shown = [f"times {time!r}"] if time else []
    shown += [f"names of series {name!r}"] if name else []
    shown += [f"to forecast {', '.join(map(repr, targets or found.targets))}"]
    shown += [f"left out {', '.join(map(repr, found.left))}"] if found.left else []
    return kept, f"{path}: {'; '.join(shown)}; --time, --id and --target name others"


def parts(file: Path, names: str) -> list[str]:
    """Column names from a comma-separated list, or a single name if a column is called that."""
    if names in read_rows(file)[0]:
        return [names]
    return [one.strip() for one in names.split(",") if one.strip()]
