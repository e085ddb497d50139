"""The folder of the recipes that come with Weft, and of the templates of `weft init`."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def folder() -> Path:
    """In the package if installed, next to it in a checkout."""
    inside = _PACKAGE / "recipes"
    return inside if inside.is_dir() else _PACKAGE.parent / "recipes"
