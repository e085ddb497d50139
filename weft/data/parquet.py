"""Read and write tables in Parquet files, which needs pyarrow. Read next: series.py."""

import io
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, DataError
from weft.store.digests import note

FREE_CELLS = 4_000_000
"""Cells allowed in any Parquet file; a larger file may have one cell per byte."""


def as_parquet(table: bytes, path: Path) -> bytes:
    """Convert a CSV with a header to Parquet: unique_id as text, ds as inferred, other columns float64."""
    pyarrow = _pyarrow(path)
    if not table:
        return b""
    names = table.decode().partition("\n")[0].split(",")
    types = {name: pyarrow.float64() for name in names if name not in ("unique_id", "ds")}
    convert = pyarrow.csv.ConvertOptions(column_types={**types, "unique_id": pyarrow.string()})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(table), convert_options=convert), buffer)
    return buffer.getvalue()


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        why = "Parquet needs pyarrow (pip install 'weft-seq[parquet]'); or take CSV"
        raise ConfigError(f"{path}: {why}") from None
    return pyarrow


def parquet_rows(path: Path) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    """Header and numbered rows of a Parquet file."""
    parquet = _pyarrow(path).parquet
    note(path)
    try:
        about = parquet.read_metadata(path)
        cells = about.num_rows * about.num_columns
        if cells > max(FREE_CELLS, path.stat().st_size):  # repeated rows take almost no space in the file
            raise DataError(
                f"expected a table, got {cells:,} cells in a file too small for them; write it as CSV",
                path=path,
            )
        table = parquet.read_table(path)
    except DataError:
        raise
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError) as error:
        why = " ".join(str(error).split())[:120]
        raise DataError(f"cannot be read as Parquet ({why}); is it the right file?", path=path) from error
    cells = [column.to_pylist() for column in table.columns]
    return list(table.column_names), [(n + 1, list(row)) for n, row in enumerate(zip(*cells, strict=True))]
