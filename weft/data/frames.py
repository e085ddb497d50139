"""Tables and lists of Python as files that the readers of this room read, so that both mean the same.

Read next: tables.py, which reads tables; ../fitting.py, which trains on them.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from weft.errors import DataError
from weft.wording import kind_of


def is_frame(data: Any) -> bool:
    """Whether this is a table or a column of pandas, or of a library that makes one of it."""
    return any(hasattr(data, name) for name in ("to_pandas", "to_csv"))


def as_csv(data: Any) -> str:
    """A table as CSV; an index of times, or one with names, is a column of it.

    Args:
        data: a DataFrame or Series of pandas, or a table with `to_pandas` (polars, Arrow, Hugging Face).

    Example:
        >>> import pandas as pd
        >>> times = pd.date_range("2024-03-31", periods=2, freq="h", tz="Europe/Zagreb")
        >>> print(as_csv(pd.Series([1.5, 2.5], index=times)))
        ds,y
        2024-03-31 00:00:00+01:00,1.5
        2024-03-31 01:00:00+01:00,2.5
        <BLANKLINE>
    """
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    table = data if hasattr(data, "columns") else data.to_frame(data.name or "y")
    if type(table.index).__name__ == "PeriodIndex":
        table = table.set_axis(table.index.to_timestamp())
    timed = type(table.index).__name__ == "DatetimeIndex"
    if timed and table.index.name is None:
        table = table.rename_axis("ds")
    return str(table.to_csv(index=timed or any(name is not None for name in table.index.names)))


def zone_of(data: Any) -> str | None:
    """The time zone of a table's index or of one of its columns; None if its times have none.

    Example:
        >>> import pandas as pd
        >>> zone_of(pd.DataFrame({"ds": pd.date_range("2024-03-31", periods=2, tz="Europe/Zagreb")}))
        'Europe/Zagreb'
    """
    if hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if not is_frame(data):
        return None
    columns = [*data.dtypes] if hasattr(data, "columns") else []
    kinds = [getattr(data.index, "dtype", None), *columns]
    zones = [str(kind.tz) for kind in kinds if getattr(kind, "tz", None) is not None]
    return zones[0] if zones else None


def as_file(data: Any, path: Path, columns: Sequence[str] = ()) -> tuple[Path, bytes]:
    """The path with the extension of a format, and the content to write there.

    Args:
        data: a table, see `as_csv`; numbers [T] or [T, N]; or a list of texts, of tuples with a cell for each
            of `columns`, of sentences as lists of (word, tag) or as tuples (words, tags).
        path: without an extension.
    """
    if is_frame(data):
        return path.with_suffix(".csv"), as_csv(data).encode()
    rows = list(data) if isinstance(data, Iterable) and not isinstance(data, str | bytes) else []
    if not rows:
        raise DataError(
            f"expected a table, a list or a file, got {kind_of(data)} without rows", path=path.name
        )
    if all(isinstance(one, str) for one in rows):
        return path.with_suffix(".txt"), "".join(f"{one}\n" for one in rows).encode()
    if columns and all(isinstance(one, tuple) and len(one) == len(columns) for one in rows):
        return path.with_suffix(".csv"), _rows([columns, *rows])
    if not columns and all(isinstance(one, list | tuple) and one for one in rows):
        lines = ("".join(f"{word}\t{tag}\n" for word, tag in _tagged(one, path.name)) for one in rows)
        return path.with_suffix(".tsv"), "\n".join(lines).encode()
    numbers = [one.tolist() if hasattr(one, "tolist") else one for one in rows]
    cells = [one if isinstance(one, list) else [one] for one in numbers]
    if all(isinstance(cell, int | float) or cell is None for row in cells for cell in row):
        names = ["y"] if len(cells[0]) == 1 else [f"y{n + 1}" for n in range(len(cells[0]))]
        return path.with_suffix(".csv"), _rows([names, *cells])
    wanted = f"texts or tuples ({', '.join(columns)})" if columns else "texts, numbers or sentences"
    odd = next((one for one in rows if not isinstance(one, str)), rows[0])
    raise DataError(f"expected a list of {wanted}, got one with {kind_of(odd)}", path=path.name)


def _tagged(sentence: Any, name: str) -> list[tuple[str, str]]:
    """The words of a sentence with their tags."""
    pairs = list(zip(*sentence, strict=False)) if isinstance(sentence, tuple) else list(sentence)
    lengths = {len(one) for one in sentence} if isinstance(sentence, tuple) else {len(pairs)}
    texts = (isinstance(text, str) and text for one in pairs for text in one)
    if len(lengths) > 1 or {len(one) for one in pairs} != {2} or not all(texts):
        shown = repr(sentence)[:60]
        raise DataError(f"expected a tag for each word of a sentence, both as texts, got {shown}", path=name)
    return pairs


def _rows(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
