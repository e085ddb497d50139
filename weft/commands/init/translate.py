"""weft init translate: look at parallel text and write a commented recipe for it."""

from pathlib import Path

import click


@click.command("translate", short_help="A translator for parallel text.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="PREFIX of PREFIX.en, PREFIX.de; or .tsv."
)
@click.option("--source", required=True, help="Language to translate from: a file ending or a column name.")
@click.option("--target", required=True, help="Language to translate into.")
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation files; found beside the others if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test files, likewise.")
@click.option("--hold-out", type=int, help="Split that many pairs off the training files for validation.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; SOURCE-TARGET.yaml by default."
)
def command(
    train: Path,
    source: str,
    target: str,
    valid: Path | None,
    test: Path | None,
    hold_out: int | None,
    output: Path | None,
) -> None:
    """A translator for parallel text.

    \b
    weft init translate --train data/train --source en --target de
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.parallel import ParallelText, is_table
    from weft.data.split import hold_out as split
    from weft.errors import ConfigError
    from weft.tasks.pairs.recipe import recipe

    output = outputs.fresh(output or Path(f"{source}-{target}.yaml"))
    if source == target:
        raise ConfigError(f"--source and --target are both {source!r}; name two languages")
    for given in (train, valid, test):
        if given is not None:
            ParallelText(given, source, target)  # so that missing files are named before any are written
    if hold_out is not None:
        if valid is not None:
            raise ConfigError("--hold-out and --valid came, and both give validation data; leave one out")
        train, valid = split(train, source, target, hold_out)
        click.echo(f"split into {train}.* and {valid}.* ({hold_out:,} pairs held out)")
    text = recipe(train, valid, test, source, target)
    files = [str(train)] if is_table(train) else [f"{train}.{source}", f"{train}.{target}"]
    outputs.begin(output, text, ["data", "check", *files])
