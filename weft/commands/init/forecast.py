"""weft init forecast: look at a table of series and write a commented recipe for it."""

from pathlib import Path
from typing import Any

import click


@click.command("forecast", short_help="A forecaster for series in CSV or Parquet.")
@click.option("--file", type=click.Path(path_type=Path), required=True, help="Wide, or unique_id, ds, y.")
@click.option("--horizon", type=int, required=True, help="Rows to forecast.")
@click.option("--time", help="The column of the times; guessed, and printed, by default.")
@click.option("--id", help="The column of the series' names, in a long table; guessed by default.")
@click.option("--target", "targets", multiple=True, help="Columns to forecast: a,b; all numbers by default.")
@click.option("--known", multiple=True, help="Columns that are known ahead, such as holidays: a,b.")
@click.option("--past", multiple=True, help="Columns whose future is not known, such as the weather: a,b.")
@click.option(
    "--dates",
    type=click.Choice(["day", "month"]),
    help="What dates begin with (31/12/2024, 12/31/2024), where they do not tell.",
)
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
    weft init forecast --file sales.csv --horizon 28 --known holiday,promotion --past temperature
    weft init forecast --file shops.csv --horizon 28 --id shop --time date --target sales
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.series import Columns
    from weft.errors import ConfigError
    from weft.tasks.forecast.columns import guessed, parts
    from weft.tasks.forecast.init import recipe

    if columns["resample"] and not columns["frequency"]:
        raise ConfigError("--resample needs the periods to gather rows into, such as --frequency D")
    output = outputs.fresh(output or Path("forecast.yaml"))
    lists = ("targets", "known", "past")
    named = {name: [part for one in columns[name] for part in parts(file, one)] for name in lists}
    which, note = guessed(file, Columns(**{**columns, **named}))
    if note:
        click.echo(note)
    text = recipe(file, horizon, which)
    outputs.begin(output, text, ["data", "check", str(file)])
