"""Where what was made from training data is kept between runs."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Where token stores are kept: $WEFT_CACHE, or weft in the user's cache directory."""
    own = os.environ.get("WEFT_CACHE")
    if own:
        return Path(own) / "stores"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "stores"
