"""weft init forecast: look at a table of series and write a commented recipe for it."""

from pathlib import Path

import click


@click.command("forecast", short_help="A forecaster for series in CSV or Parquet.")
@click.option("--file", type=click.Path(path_type=Path), required=True, help="Wide, or unique_id, ds, y.")
@click.option("--horizon", type=int, required=True, help="Rows to forecast.")
@click.option("--target", "targets", multiple=True, help="A column to forecast; all by default.")
@click.option("--known", multiple=True, help="A column that is known ahead, such as a holiday.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; or forecast.yaml.")
def command(
    file: Path, horizon: int, targets: tuple[str, ...], known: tuple[str, ...], output: Path | None
) -> None:
    """A forecaster for series.

    \b
    weft init forecast --file sales.csv --horizon 28
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.series.recipe import recipe

    output = outputs.fresh(output or Path("forecast.yaml"))
    text = recipe(file, horizon, targets, known)
    outputs.begin(output, text, ["data", "check", str(file)])
