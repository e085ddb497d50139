"""A tokenizer.json as other programs write them, with parts that a test chooses."""

import json
from typing import Any

from tokenizers import Tokenizer, models


def forged(**parts: Any) -> dict[str, Any]:
    """A tokenizer of single letters with other parts."""
    letters = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "x": 6}
    content = json.loads(Tokenizer(models.WordLevel(letters, "<unk>")).to_str())
    return {**content, **parts}


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def replace(pattern: str, content: str, sort: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {sort: pattern}, "content": content}
