"""Shared by the recipes of `weft init`: files next to the training file, and values as YAML."""

import json
import re
from pathlib import Path

VALID_NAMES = ("valid", "val", "dev", "validation")
WORDS = ("null", "true", "false")  # YAML 1.2 does not read these as text


def sibling(train: Path, names: tuple[str, ...]) -> Path | None:
    """A file named like the training file, but valid (val, dev) or test instead of train."""
    for name in names:
        candidate = train.with_name(train.name.replace("train", name))
        if candidate != train and candidate.is_file():
            return candidate
    return None


def quoted(value: object) -> str:
    """A text as YAML, in quotes unless it is safe without."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text, re.ASCII) and text.lower() not in WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
