"""weft serve: serve runs over HTTP, with a web page to try them."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING

import click

from weft.commands.access import NAMES, Who, access
from weft.commands.options import GroupedCommand, device, plugin
from weft.commands.output_check import OutputPath, check_outputs

if TYPE_CHECKING:
    from weft.serve.limits import ServerLimits
    from weft.serve.served import ServedRun

HEADINGS = {
    "Address": ("host", "port", "workers"),
    "Answers": ("glossaries",),
    "Storage": ("suggestions",),
    "Who may use it": NAMES,
    "Limits": ("queue", "batch", "deadline", "characters", "tokens", "connections", "bodies"),
}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command(cls=GroupedCommand, headings=HEADINGS)
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
@click.option(
    "--bodies",
    metavar="MB",
    type=click.IntRange(11),
    default=100,
    help="Maximum megabytes of requests and files in progress; one client may send a quarter of it at once.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="Number of processes that answer; they share the weights. On the CPU only.",
)
@click.option(
    "--suggestions",
    metavar="FILE",
    type=OutputPath(),
    help="Keep better translations from users (LibreTranslate's /suggest) in FILE, as lines of JSON.",
)
@click.option(
    "--glossary",
    "glossaries",
    multiple=True,
    metavar="[RUN=]FILE",
    help="Table TERM TAB TRANSLATION, as for weft predict, for all translators and summarisers, or the RUN "
    "of this name (repeatable). A changed file is read again.",
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
    bodies: int,
    workers: int,
    suggestions: Path | None,
    glossaries: tuple[str, ...],
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
      weft serve runs/en-es runs/es-en --glossary en-es=terms.tsv
      weft serve --new-key alice >> keys.txt
      weft serve runs/en-es --host 0.0.0.0 --allow-host weft.example.org --api-keys keys.txt
    """  # noqa: D301  click reads the \b
    from weft.serve.limits import ServerLimits

    limits = ServerLimits(
        queue=queue,
        batch_rows=batch,
        deadline_seconds=deadline,
        characters=characters,
        tokens=tokens,
        connections=connections,
        bodies_bytes=bodies * 10**6,
    )

    def opened(device: str) -> dict[str, "ServedRun"]:
        from weft.serve.served import named

        return named(runs, device, plugins, glossaries)

    _serve(opened, device, host, port, who, limits, workers, suggestions)


def _serve(
    opened: Callable[[str], dict[str, "ServedRun"]],
    device: str,
    host: str,
    port: int,
    who: Who,
    limits: "ServerLimits",
    workers: int,
    suggestions: Path | None,
) -> None:
    check_outputs()
    with ExitStack() as stack:
        _ignore_hangups(stack)
        if workers > 1:
            device = _cpu(device)
            _share_counts(stack)
        _check_installed()
        from weft.serve.app import Application
        from weft.serve.served import Reloader
        from weft.serve.server import GRACE_SECONDS, bound, serve
        from weft.serve.workers import ServerProcesses

        rules, tls, log = who.opened(host, stack)
        listening = stack.enter_context(bound(host, port))
        place = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}"
        place += f":{listening.getsockname()[1]}"
        keyless = host not in LOOPBACK and not rules.keys

        def answer(served: dict[str, "ServedRun"], listens: Callable[[], None] = lambda: None) -> None:
            # A worker that is replaced answers all that it has begun; at a shutdown its parent ends it.
            grace = GRACE_SECONDS if workers == 1 else max(GRACE_SECONDS, int(limits.deadline_seconds) + 1)
            application = Application(served, limits, rules, log, suggestions)
            serve(application, listening, tls, listens=listens, grace_seconds=grace)

        if workers > 1:
            if rules.keys:
                rules.keys.share(stack.enter_context(TemporaryFile(dir=_memory())))
            several = ServerProcesses(lambda: opened(device), workers, answer)
            _announce([(run.name, run.kind) for run in several.runs.values()], place, keyless)
            several.run(GRACE_SECONDS + 5)
        else:
            served = opened(device)
            _announce([(run.name, run.kind) for run in served.values()], place, keyless)
            Reloader(served).watch()
            answer(served)


def _announce(runs: list[tuple[str, str]], place: str, keyless: bool) -> None:
    names = ", ".join(f"{name} ({kind})" for name, kind in runs)
    click.echo(f"{names}: {place}", err=True)
    if keyless:
        click.echo("Other machines can use this server without a key; --api-keys requires one.", err=True)


def _check_installed() -> None:
    from weft.errors import ConfigError

    try:
        import weft.serve.server  # noqa: F401  it and app.py import all libraries of the extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("weft"):
            raise
        raise ConfigError(
            f"weft serve needs {error.name}; install Weft with its extra: pip install 'weft-seq[serve]'"
        ) from error


def _ignore_hangups(stack: ExitStack) -> None:
    """Keep answering after SIGHUP, which ends a process by default; changed files are read again anyway."""
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        stack.callback(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))


def _share_counts(stack: ExitStack) -> None:
    """Let the workers count together; prometheus_client reads the variable when it is imported."""
    name = "PROMETHEUS_MULTIPROC_DIR"
    os.environ[name] = stack.enter_context(TemporaryDirectory(prefix="weft-counts-", dir=_memory()))
    stack.callback(os.environ.pop, name)


def _memory() -> str | None:
    """The folder in memory, if there is one: on a full disk, a mapped file ends the process that writes."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _cpu(device: str) -> str:
    """The device of several workers.

    Raises:
        ConfigError: it is a GPU, whose memory processes cannot share after a fork.
    """
    import torch

    from weft.errors import ConfigError

    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    raise ConfigError(
        f"--workers: expected 1 with --device {device}, since one process uses a GPU best; add --device cpu "
        "to answer on the CPU"
    )
