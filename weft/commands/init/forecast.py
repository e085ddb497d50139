"""weft init forecast: look at a table of series and write a commented recipe for it."""

from pathlib import Path
from typing import Any

import click


@click.command("forecast", short_help="A forecaster for series in CSV or Parquet.")
@click.option("--file", type=click.Path(path_type=Path), required=True, help="Wide, or unique_id, ds, y.")
@click.option("--horizon", type=int, required=True, help="Rows to forecast.")
@click.option("--target", "targets", multiple=True, help="A column to forecast; all by default.")
@click.option("--known", multiple=True, help="A column that is known ahead, such as a holiday.")
@click.option("--past", multiple=True, help="A column whose future is not known, such as the weather.")
@click.option("--frequency", help="How often rows come, as pandas has it: h, D, B, MS, QE; or by the times.")
@click.option(
    "--resample",
    type=click.Choice(["mean", "sum", "first", "last", "min", "max"]),
    help="Gather irregular rows into periods of --frequency.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; or forecast.yaml.")
def command(file: Path, horizon: int, output: Path | None, **columns: Any) -> None:
    """A forecaster for series.

    \b
    weft init forecast --file sales.csv --horizon 28
    weft init forecast --file sales.csv --horizon 28 --known holiday --past temperature
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.series import Columns
    from weft.errors import ConfigError
    from weft.tasks.series.recipe import recipe

    if columns["resample"] and not columns["frequency"]:
        raise ConfigError("--resample needs the periods to gather rows into, such as --frequency D")
    output = outputs.fresh(output or Path("forecast.yaml"))
    text = recipe(file, horizon, Columns(**columns))
    outputs.begin(output, text, ["data", "check", str(file)])
