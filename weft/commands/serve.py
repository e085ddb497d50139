"""weft serve: a page and an HTTP interface over trained runs."""

from pathlib import Path

import click


@click.command(short_help="Serve runs: a page to try them, and an HTTP interface.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other machines in.")
@click.option("--queue", type=click.IntRange(1), default=512, show_default=True, help="Texts that may wait.")
@click.option(
    "--batch", type=click.IntRange(1), default=64, show_default=True, help="Texts answered together."
)
@click.option(
    "--deadline", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Seconds for a request."
)
@click.option(
    "--characters", type=click.IntRange(1), default=20_000, show_default=True, help="Of a request, at most."
)
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipes name.")
def command(
    runs: tuple[Path, ...],
    port: int,
    host: str,
    queue: int,
    batch: int,
    deadline: float,
    characters: int,
    device: str,
    plugins: tuple[str, ...],
) -> None:
    """Serve each RUN on http://127.0.0.1:8000: type a sentence and watch the model answer.

    Translators speak LibreTranslate's interface (/translate), language models OpenAI's (/v1/completions), the
    others /predict. A run that is still in training shows its curves. Ctrl-C or SIGTERM ends it, once what
    was begun is answered.

    \b
    weft serve runs/en-es runs/es-en
    curl -d q="Click the button." -d source=en -d target=es http://127.0.0.1:8000/translate
    """  # noqa: D301  click reads the \b
    from weft.errors import ConfigError

    try:
        from weft.serve.app import Serving
        from weft.serve.server import bound, serve
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("weft"):
            raise
        raise ConfigError(
            f"weft serve needs {error.name}; install Weft with its extra: pip install 'weft[serve]'"
        ) from error
    from weft.serve.limits import Limits
    from weft.serve.served import named

    with bound(host, port) as listening:
        limits = Limits(queue=queue, batch_rows=batch, deadline_seconds=deadline, characters=characters)
        serving = Serving(named(runs, device, plugins), limits)
        shown = f"[{host}]" if ":" in host else host
        names = ", ".join(f"{run.name} ({run.kind})" for run in serving.runs.values())
        click.echo(f"{names}: http://{shown}:{listening.getsockname()[1]}", err=True)
        serve(serving, listening)
