"""Libraries that only some documents need."""

import importlib
from typing import Any

from weft.errors import ConfigError


def library(name: str, what: str = "this kind of document") -> Any:
    """A library of the extra `documents`.

    Args:
        name: its module.
        what: what needs it, for the error.

    Raises:
        ConfigError: it is not installed.

    Example:
        >>> library("weft_lacks_it")
        Traceback (most recent call last):
        ...
        weft.errors.ConfigError: this kind of document needs weft_lacks_it; install Weft with its extra: pip \
install 'weft-seq[documents]'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"{what} needs {name.partition('.')[0]}; install Weft with its extra: "
            "pip install 'weft-seq[documents]'"
        ) from error
