"""The cache directory for data that can be recomputed: token stores, compiled blocks, kernel timings."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """$WEFT_CACHE, or the folder weft in the user's cache directory."""
    own = os.environ.get("WEFT_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"
