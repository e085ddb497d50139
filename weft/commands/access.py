"""The options of `weft serve` about who may use the server. Read next: serve.py; ../serve/guard.py."""

import functools
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weft.commands.output_check import OutputPath
from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.serve.counts import AccessLog
    from weft.serve.guard import Access
    from weft.serve.server import Tls

NAMES = ("api_keys", "new_key", "hosts", "origins", "tls_cert", "tls_key", "access_log")
"""Names of these options, for `headings`."""

_FILE = click.Path(path_type=Path)


class Who(NamedTuple):
    """The values of these options, named as in `NAMES`."""

    tls_cert: Path | None
    tls_key: Path | None
    api_keys: Path | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    access_log: Path | None

    def opened(self, host: str, stack: ExitStack) -> "tuple[Access, Tls | None, AccessLog | None]":
        """The checked files and names.

        Args:
            host: the address to listen on, which is a name of the server too.
            stack: closes the log.

        Raises:
            ConfigError: a file or a name cannot be used.
        """
        from weft.serve.counts import AccessLog
        from weft.serve.guard import Access
        from weft.serve.keys import Keys
        from weft.serve.server import Tls

        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("expected --tls-cert and --tls-key together, got one; pass both or none")
        tls = Tls(self.tls_cert, self.tls_key) if self.tls_cert and self.tls_key else None
        if tls:
            tls.check()
        hosts = (host.lower(), *(name.lower() for name in self.hosts))
        keys = Keys(self.api_keys) if self.api_keys else None
        access = Access(hosts=hosts, origins=self.origins, keys=keys)
        log = stack.enter_context(closing(AccessLog(self.access_log))) if self.access_log else None
        return access, tls, log


def _print_key(context: click.Context, option: click.Parameter, name: str | None) -> None:
    """Print a new key and its line for the file, and leave."""
    if name is None or context.resilient_parsing:
        return
    from weft.serve.keys import new_key

    key, line = new_key(name)
    click.echo(f"API key of {name}, shown only now: {key}", err=True)
    click.echo(line)
    context.exit()


_OPTIONS = (
    click.option(
        "--api-keys",
        metavar="FILE",
        type=_FILE,
        help="Require an API key; each line is NAME:SHA256[:REQUESTS_PER_MINUTE]. A changed file is reread.",
    ),
    click.option(
        "--new-key",
        metavar="NAME",
        is_eager=True,
        expose_value=False,
        callback=_print_key,
        help="Make an API key: show it once, print the line for --api-keys, and exit.",
    ),
    click.option(
        "--allow-host",
        "hosts",
        metavar="NAME",
        multiple=True,
        help="Host name of this server, besides localhost and IP addresses (repeatable); * allows all.",
    ),
    click.option(
        "--cors",
        "origins",
        metavar="ORIGIN",
        multiple=True,
        help="Web site whose pages may use this server, such as https://app.example.org (repeatable).",
    ),
    click.option(
        "--tls-cert", metavar="FILE", type=_FILE, help="Certificate chain in PEM format: serve HTTPS."
    ),
    click.option(
        "--tls-key", metavar="FILE", type=_FILE, help="Private key of the certificate, in PEM format."
    ),
    click.option(
        "--access-log",
        metavar="FILE",
        type=OutputPath(),
        help="Append one JSON line per request, without texts; - for standard output.",
    ),
)


def access(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options named by `NAMES`; the command gets their values as `who`."""

    @functools.wraps(command)
    def inner(**given: Any) -> Any:
        who = Who(**{name: given.pop(name) for name in Who._fields})
        return command(who=who, **given)

    for option in reversed(_OPTIONS):
        inner = option(inner)
    return inner
