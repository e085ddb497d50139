"""Packages of the user whose parts a recipe or an option may name (--plugin). Read next: build.py."""

import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

from weft.config.build import named
from weft.config.table import Entry
from weft.errors import ConfigError


def find(plugins: Collection[str]) -> None:
    """See that the packages can be imported, if need be from the working directory.

    Raises:
        ConfigError: one cannot.
    """
    for name in plugins:
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            found = importlib.util.find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ConfigError(
                f"--plugin {name}: no package of that name can be imported; "
                "install it, or start weft in the directory that holds it"
            )


def asked(option: str, name: str, contract: type, plugins: Collection[str] = ()) -> type:
    """The part that an option of the command line names.

    Args:
        option: such as --task, for errors.
        name: of a file of the contract's room, or package.module.Class of a plugin.
        contract: what the part extends.
        plugins: packages whose parts may be named.

    Raises:
        ConfigError: there is no such part, or its package is not among the plugins.
    """
    find(plugins)
    return named(Entry("", option, name), contract, plugins=plugins)
