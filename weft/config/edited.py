"""Change settings in the text of a recipe and keep its comments. Read next: text.py."""

import io
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from weft.config.text import dump, parse
from weft.errors import ConfigError


def edited(text: str, changes: Mapping[str, Any]) -> str:
    r"""A recipe's text with other values; its comments and its layout stay.

    Args:
        text: a recipe that `parse` has read.
        changes: values by the full name of a setting, such as training.optimiser.lr.

    Example:
        >>> print(edited("task: tag  # words\nmodel:\n  crf: true\n", {"model.crf": False}), end="")
        task: tag  # words
        model:
          crf: false
    """
    wanted = parse(text, "recipe").plain()
    for name, value in changes.items():
        _set(wanted, name, value)
    try:
        editor = YAML(typ="rt", pure=True)  # keeps comments; builds no objects either
        editor.width, editor.preserve_quotes = 10_000, True
        tree = editor.load(text)
        for name, value in changes.items():
            _set(tree, name, _styled(value))
        out = io.StringIO()
        editor.dump(tree, out)
        found = "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])
        if parse(found, "recipe").plain() == wanted:
            return found
    except (YAMLError, ConfigError, ValueError, TypeError, AttributeError):
        pass  # an unusual layout: without its comments
    return dump(wanted)


def _set(tree: Any, name: str, value: Any) -> None:
    *path, last = name.split(".")
    for key in path:
        inner = tree.get(key)
        if not isinstance(inner, dict):
            inner = _styled({"use": inner} if isinstance(inner, str) else {})
            tree[key] = inner
        tree = inner
    tree[last] = value


def _styled(value: Any) -> Any:
    """Lists and tables on one line."""
    if isinstance(value, dict):
        table = CommentedMap({key: _styled(one) for key, one in value.items()})
        table.fa.set_flow_style()
        return table
    if isinstance(value, list | tuple):
        row = CommentedSeq([_styled(one) for one in value])
        row.fa.set_flow_style()
        return row
    return value
