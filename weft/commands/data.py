"""weft data: look at data files before anything is trained on them."""

from pathlib import Path

import click

SHOWN = 50


@click.group(short_help="Check data files: everything that is wrong, at once.", no_args_is_help=True)
def command() -> None:
    """Look at data files."""


@command.command("check", short_help="Report everything that is wrong, with file and line.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help=f"Print every finding, not only the first {SHOWN}.")
def check(files: tuple[Path, ...], everything: bool) -> int:
    """Report everything that is wrong with FILES (train.en train.de, or .tsv), with file and line.

    Exit code 1 if something would stop or spoil a training, 0 otherwise.
    """
    from weft.data.check import check as look

    report = look(*files)
    shown = report.findings if everything else report.findings[:SHOWN]
    for finding in shown:
        click.echo(str(finding))
    if len(report.findings) > len(shown):
        click.echo(f"... and {len(report.findings) - len(shown):,} more (--all prints them)")
    click.echo(report.summary)
    return 1 if report.findings else 0
