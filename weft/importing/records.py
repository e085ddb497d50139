"""Settings from the records that torchfile.py makes of configuration objects.

A toolkit keeps its settings as an argparse.Namespace (a dict here), or as containers of omegaconf, whose
values are nodes and whose choices are enums. Read next: pickled.py, what a record is.
"""

from typing import Any

from weft.importing.pickled import Record

DEEPEST = 4  # an enum inside a node inside a container


def value_of(found: Any) -> Any:
    """What a node of omegaconf or an enum holds; anything else is returned unchanged.

    Example:
        >>> value_of(Record("fairseq.dataclass.constants.PRINT", ("soft",)))
        'soft'
    """
    for _ in range(DEEPEST):
        if not isinstance(found, Record):
            break
        if found.kind.startswith("omegaconf.") and ("_val" in found or "_content" in found):
            found = found["_val"] if "_val" in found else found["_content"]
        elif len(found.args) == 1 and not found:
            found = found.args[0]
        else:
            break
    return found


def content(found: Any) -> dict[Any, Any]:
    """What a dict or a container of omegaconf holds, with its nodes and inner containers as they are."""
    held = value_of(found)
    return held if isinstance(held, dict) else {}


def settings(found: Any) -> dict[str, str | int | float | bool | None]:
    """The plain settings of a Namespace, a dict or a container of omegaconf.

    Interpolations such as ${model.size}, lists and inner containers are left out.
    """
    values = {name: value_of(value) for name, value in content(found).items() if isinstance(name, str)}
    return {
        name: value
        for name, value in values.items()
        if value is None
        or isinstance(value, int | float)
        or (isinstance(value, str) and not value.startswith("${") and value != "???")
    }
