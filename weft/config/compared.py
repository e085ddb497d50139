"""Compare two recipes, setting by setting. Read next: ../run/training.py."""

import json
from typing import Any


def at(plain: Any, keys: tuple[str, ...]) -> Any:
    """The setting at a path of keys in nested tables; None if there is none."""
    for key in keys:
        plain = plain.get(key) if isinstance(plain, dict) else None
    return plain


def difference(old: Any, new: Any, name: str) -> str:
    """The first setting that differs, with its old value and the recipe's; "" if none differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            found = difference(old.get(key), new.get(key), f"{name}.{key}" if name else key)
            if found:
                return found
        return ""
    return "" if old == new else f"{name}: {_shown(old)}, the recipe says {_shown(new)}"


def _shown(value: Any) -> str:
    """A value as a recipe writes it."""
    return value if isinstance(value, str) else json.dumps(value)
