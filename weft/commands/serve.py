"""weft serve: serve runs over HTTP, with a web page to try them."""

from contextlib import ExitStack
from pathlib import Path

import click

from weft.commands.access import NAMES, Who, access
from weft.commands.options import Grouped, device, plugin

HEADINGS = {
    "Address": ("host", "port"),
    "Who may use it": NAMES,
    "Limits": ("queue", "batch", "deadline", "characters", "tokens", "connections"),
}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command(cls=Grouped, headings=HEADINGS)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8000, help="Port; 0 chooses a free one."
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="Address to listen on; 0.0.0.0 accepts connections from other machines.",
)
@access
@click.option(
    "--queue", metavar="N", type=click.IntRange(1), default=512, help="Maximum number of waiting texts."
)
@click.option(
    "--batch", metavar="N", type=click.IntRange(1), default=64, help="Maximum number of texts per batch."
)
@click.option(
    "--deadline",
    metavar="SECONDS",
    type=click.FloatRange(0.1),
    default=60.0,
    help="Maximum time per request, in seconds.",
)
@click.option(
    "--characters",
    metavar="N",
    type=click.IntRange(1),
    default=20_000,
    help="Maximum number of characters per request.",
)
@click.option(
    "--tokens",
    metavar="N",
    type=click.IntRange(1),
    default=1024,
    help="Maximum number of tokens per text, a sentence for example; a request may have 16 times as many.",
)
@click.option(
    "--connections",
    metavar="N",
    type=click.IntRange(1),
    default=1000,
    help="Maximum number of open connections; beyond it idle ones are closed.",
)
@device
@plugin
def command(
    runs: tuple[Path, ...],
    port: int,
    host: str,
    who: Who,
    queue: int,
    batch: int,
    deadline: float,
    characters: int,
    tokens: int,
    connections: int,
    device: str,
    plugins: tuple[str, ...],
) -> None:
    """Try your models in a browser, and use them over HTTP: serve each RUN on http://127.0.0.1:8000.

    Translators are compatible with LibreTranslate (/translate) and language models with OpenAI
    (/v1/completions); every other task has /predict. A run that is still training shows its curves. Ctrl-C or
    SIGTERM stops the server after it has answered the requests in progress.

    \b
    Examples:
      weft serve runs/en-es runs/es-en
      curl -d q="Click the button." -d source=en -d target=es http://127.0.0.1:8000/translate
      weft serve --new-key alice >> keys.txt
      weft serve runs/en-es --host 0.0.0.0 --allow-host weft.example.org --api-keys keys.txt
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

    with ExitStack() as stack:
        rules, tls, log = who.opened(host, stack)
        listening = stack.enter_context(bound(host, port))
        limits = Limits(
            queue=queue,
            batch_rows=batch,
            deadline_seconds=deadline,
            characters=characters,
            tokens=tokens,
            connections=connections,
        )
        serving = Serving(named(runs, device, plugins), limits, rules, log)
        shown = f"[{host}]" if ":" in host else host
        names = ", ".join(f"{run.name} ({run.kind})" for run in serving.runs.values())
        scheme = "https" if tls else "http"
        click.echo(f"{names}: {scheme}://{shown}:{listening.getsockname()[1]}", err=True)
        if host not in LOOPBACK and not rules.keys:
            click.echo("Other machines can use this server without a key; --api-keys requires one.", err=True)
        serve(serving, listening, tls)
