"""Which columns of a table of series are what: as a user names them, the rest by what is in them."""

from pathlib import Path

from weft.data.guess import columns_of, series_of
from weft.data.series import LONG, Columns, read_rows
from weft.errors import ConfigError


def guessed(path: Path, which: Columns, *, check: bool = False) -> tuple[Columns, str]:
    """The columns with what nobody named, by what is in them, and a sentence that says so.

    A table of unique_id, ds and y needs no guess.

    Args:
        path: of the table.
        which: what the user says.
        check: read every column of numbers of a table that names its series; else one must be named.

    Raises:
        DataError: it cannot be read.
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
            f"{path}: expected one column of values beside the series' names ({name}), got "
            f"{', '.join(targets)[:200]}; name it with --target, and the others with --known or --past"
        )
    kept = which._replace(time=time, id=name, targets=tuple(targets))
    shown = [f"times {time!r}"] if time else []
    shown += [f"names of series {name!r}"] if name else []
    shown += [f"to forecast {', '.join(map(repr, targets or found.targets))}"]
    shown += [f"left out {', '.join(map(repr, found.left))}"] if found.left else []
    return kept, f"{path}: {'; '.join(shown)}; --time, --id and --target name others"


def parts(file: Path, names: str) -> list[str]:
    """The columns of a list with commas; one name where a column is called so."""
    if names in read_rows(file)[0]:
        return [names]
    return [one.strip() for one in names.split(",") if one.strip()]
