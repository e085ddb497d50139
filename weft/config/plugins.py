"""The user's own packages, whose parts recipes and options may name (--plugin). Read next: build.py."""

import importlib.util
import sys
from collections.abc import Collection
from pathlib import Path

from weft.config.build import named
from weft.config.table import Entry
from weft.errors import ConfigError


def check_plugins(plugins: Collection[str]) -> None:
    """Check that the packages can be imported, from the working directory if necessary.

    Raises:
        ConfigError: a package cannot be imported.
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
                "install it, or start weft in the directory that contains it"
            )


def named_part(option: str, name: str, contract: type, plugins: Collection[str] = ()) -> type:
    """The part named by a command-line option.

    Args:
        option: the option, such as --task, for errors.
        name: the name of a part's file, or package.module.Class of a plugin.
        contract: base class of the part.
        plugins: packages whose parts may be named.

    Raises:
        ConfigError: there is no such part, or its package is not among the plugins.
    """
    check_plugins(plugins)
    return named(Entry("", option, name), contract, plugins=plugins)
