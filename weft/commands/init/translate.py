"""weft init translate: look at parallel text and write a commented recipe for it."""

from pathlib import Path

import click


@click.command("translate", short_help="A translator for parallel text.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--train", type=click.Path(path_type=Path), help="PREFIX of PREFIX.en, PREFIX.de; a .tsv; or two FILES."
)
@click.option("--source", help="Language to translate from: a file ending, a column name or any name.")
@click.option("--target", help="Language to translate into. Of two FILES both are found by their names.")
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation files; found beside the others if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test files, likewise.")
@click.option("--hold-out", type=int, help="Split that many pairs off the training files for validation.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; SOURCE-TARGET.yaml by default."
)
def command(
    files: tuple[Path, ...],
    train: Path | None,
    source: str | None,
    target: str | None,
    valid: Path | None,
    test: Path | None,
    hold_out: int | None,
    output: Path | None,
) -> None:
    """A translator for parallel text: two files of any names, line by line, or as --train says.

    Validation and test files of any names are given as --valid FIRST,SECOND.

    \b
    weft init translate english.txt croatian.txt --hold-out 500
    weft init translate --train data/train --source en --target de
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.data.parallel import ParallelText
    from weft.data.split import hold_out as split
    from weft.errors import ConfigError
    from weft.tasks.translate.init import recipe

    train, source, target = _named(files, train, source, target)
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
    checked = dict.fromkeys(map(str, ParallelText(train, source, target).files))
    outputs.begin(output, text, ["data", "check", *checked])


def _named(
    files: tuple[Path, ...], train: Path | None, source: str | None, target: str | None
) -> tuple[Path, str, str]:
    """The training text and its languages, those of two files by their names."""
    from weft.data.sides import side_name
    from weft.errors import ConfigError

    if len(files) > 2 or (files and train is not None) or not (files or train):
        raise ConfigError("expected two FILES, one text, or --train with one; see weft init translate --help")
    if len(files) == 2:
        train = Path(",".join(map(str, files)))
        names = [side_name(str(file)) for file in files]
        if not (source and target):
            click.echo(
                f"{files[0]} is called {names[0]}, {files[1]} {names[1]}; --source, --target name others"
            )
        source, target = source or names[0], target or names[1]
    elif files:
        train = files[0]
    if train is None or not source or not target:
        raise ConfigError("--source and --target: name the languages, as file endings or columns")
    return train, source, target
