"""weft serve: serve runs over HTTP, with a web page to try them."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

import click

from weft.commands.options import GroupedCommand, count_option, device, file_option, plugin
from weft.commands.outputs import check_outputs, output_option
from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.serve.guard import Access
    from weft.serve.served import ServedRun
    from weft.serve.server import Tls

LIMITS = ("queue", "batch_rows", "deadline_seconds", "characters", "tokens", "connections")
"""Options that are fields of `ServerLimits`."""

HEADINGS = {
    "Address": ("host", "port", "workers"),
    "Answers": ("glossaries",),
    "Storage": ("suggestions",),
    "Who may use it": ("api_keys", "new_key", "hosts", "origins", "tls_cert", "tls_key", "access_log"),
    "Limits": (*LIMITS, "bodies"),
}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _print_key(context: click.Context, option: click.Parameter, name: str | None) -> None:
    """Print a new key and its line for the file, and leave."""
    if name is None or context.resilient_parsing:
        return
    from weft.serve.keys import new_key

    key, line = new_key(name)
    click.echo(f"API key of {name}, shown only now: {key}", err=True)
    click.echo(line)
    context.exit()


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
@file_option(
    "--api-keys",
    help="Require an API key; each line is NAME:SHA256[:REQUESTS_PER_MINUTE]. A changed file is reread.",
)
@click.option(
    "--new-key",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=_print_key,
    help="Make an API key: show it once, print the line for --api-keys, and exit.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Host name of this server, besides localhost and IP addresses (repeatable); * allows all.",
)
@click.option(
    "--cors",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Web site whose pages may use this server, such as https://app.example.org (repeatable).",
)
@file_option("--tls-cert", help="Certificate chain in PEM format: serve HTTPS.")
@file_option("--tls-key", help="Private key of the certificate, in PEM format.")
@output_option("--access-log", help="Append one JSON line per request, without texts; - for standard output.")
@count_option("--queue", default=512, help="Maximum number of waiting texts.")
@count_option("--batch", "batch_rows", default=64, help="Maximum number of texts per batch.")
@click.option(
    "--deadline",
    "deadline_seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.1),
    default=60.0,
    help="Maximum time per request, in seconds.",
)
@count_option("--characters", default=20_000, help="Maximum number of characters per request.")
@count_option(
    "--tokens",
    default=1024,
    help="Maximum number of tokens per text, a sentence for example; a request may have 16 times as many.",
)
@count_option(
    "--connections", default=1000, help="Maximum number of open connections; beyond it idle ones are closed."
)
@count_option(
    "--bodies",
    metavar="MB",
    default=100,
    help="Maximum megabytes of requests and files in progress; one client may send a quarter of it at once.",
    least=11,
)
@count_option(
    "--workers", default=1, help="Number of processes that answer; they share the weights. On the CPU only."
)
@output_option(
    "--suggestions",
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
def command(**given: Any) -> None:
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
    check_outputs()
    with ExitStack() as stack:
        _ignore_hangups(stack)
        _serve(given, stack)


def _serve(given: Mapping[str, Any], stack: ExitStack) -> None:
    several, host = given["workers"] > 1, given["host"]
    device = given["device"]
    if several:
        device = _cpu(device)
        _share_counts(stack)
    from weft.serve.app import Application
    from weft.serve.counts import AccessLog
    from weft.serve.limits import ServerLimits
    from weft.serve.served import Reloader, named
    from weft.serve.server import GRACE_SECONDS, bound, serve
    from weft.serve.workers import ServerProcesses

    limits = ServerLimits(bodies_bytes=given["bodies"] * 10**6, **{name: given[name] for name in LIMITS})
    tls, access = _tls(given), _access(given)
    log = stack.enter_context(closing(AccessLog(given["access_log"]))) if given["access_log"] else None
    listening = stack.enter_context(bound(host, given["port"]))
    place = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}"
    place += f":{listening.getsockname()[1]}"
    # A worker that is replaced answers all that it has begun; at a shutdown its parent ends it.
    grace = max(GRACE_SECONDS, int(limits.deadline_seconds) + 1) if several else GRACE_SECONDS

    def opened() -> "dict[str, ServedRun]":
        return named(given["runs"], device, given["plugins"], given["glossaries"])

    def announce(runs: "dict[str, ServedRun]") -> None:
        click.echo(f"{', '.join(f'{run.name} ({run.kind})' for run in runs.values())}: {place}", err=True)
        if host not in LOOPBACK and not access.keys:
            click.echo("Other machines can use this server without a key; --api-keys requires one.", err=True)

    def answer(runs: "dict[str, ServedRun]", listens: Callable[[], None]) -> None:
        application = Application(runs, limits, access, log, given["suggestions"])
        serve(application, listening, tls, listens=listens, grace_seconds=grace)

    if several:
        with TemporaryFile(dir=_memory()) as counted:
            if access.keys:
                access.keys.share(counted)
            processes = ServerProcesses(opened, given["workers"], answer)
            announce(processes.runs)
            processes.run(GRACE_SECONDS + 5, listening.close)
    else:
        runs = opened()
        Reloader(runs).watch()
        answer(runs, lambda: announce(runs))


def _tls(given: Mapping[str, Any]) -> "Tls | None":
    from weft.serve.server import Tls

    certificate, key = given["tls_cert"], given["tls_key"]
    if (certificate is None) != (key is None):
        raise ConfigError("expected --tls-cert and --tls-key together, got one; pass both or none")
    if certificate is None:
        return None
    tls = Tls(certificate, key)
    tls.check()
    return tls


def _access(given: Mapping[str, Any]) -> "Access":
    from weft.serve.guard import Access
    from weft.serve.keys import Keys

    hosts = (given["host"].lower(), *(name.lower() for name in given["hosts"]))
    keys = Keys(given["api_keys"]) if given["api_keys"] else None
    return Access(hosts=hosts, origins=given["origins"], keys=keys)


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
    """The device of several workers."""
    import torch

    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    raise ConfigError(
        f"--workers: expected 1 with --device {device}, since one process uses a GPU best; add --device cpu "
        "to answer on the CPU"
    )
