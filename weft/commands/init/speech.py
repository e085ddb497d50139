"""weft init speech: look at recordings and write a commented recipe for them."""

from pathlib import Path

import click


@click.command("speech", short_help="A transcriber for recordings.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="A list, lines FILE TAB TRANSCRIPT."
)
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation list; found beside the other if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test list, likewise.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; speech.yaml by default."
)
def command(train: Path, valid: Path | None, test: Path | None, output: Path | None) -> None:
    """A transcriber for recordings: wav files of PCM, named in a list beside what is said in them.

    \b
    weft init speech --train recordings/train.tsv
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.speech.init import recipe

    output = outputs.fresh(output or Path("speech.yaml"))
    text_ = recipe(train, valid, test)
    outputs.begin(output, text_, ["data", "check", "--task", "speech", str(train)])
