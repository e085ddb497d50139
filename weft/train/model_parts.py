"""Find the parts of a model by name: `encoder`, `embed`, or a longer path such as `encoder.blocks.0`.

Read next: transfer.py, which takes parts of another run; tuned.py, which freezes parts or slows them down.
"""

from collections.abc import Collection

from torch import nn

from weft.errors import ConfigError


def find_part(model: nn.Module, name: str, setting: str) -> str:
    """The path of a part in a model: the module of that path, or the outermost one whose path ends with it.

    Args:
        model: the model.
        name: such as `encoder`.
        setting: the setting that names it, for the error.

    Raises:
        ConfigError: there is no such part, or it has no weights.

    Example:
        >>> wrapped = nn.Sequential(nn.ModuleDict({"encoder": nn.Linear(2, 3)}))
        >>> find_part(wrapped, "encoder", "training.freeze")
        '0.encoder'
    """
    paths = [path for path, module in model.named_modules(remove_duplicate=False) if path]
    found = [path for path in paths if path == name or path.endswith(f".{name}")]
    chosen = min(found, key=lambda path: path.count("."), default="")
    if not chosen or not model.get_submodule(chosen).state_dict():
        raise ConfigError(f"{setting}: expected one of {', '.join(names(model))}, got {name[:80]!r}")
    return chosen


def names(model: nn.Module) -> list[str]:
    """The parts that a user may want to name: the modules with weights, without a wrapper around all."""
    while len(children := [one for one in model.named_children() if one[1].state_dict()]) == 1:
        model = children[0][1]
    return [name for name, _ in children]


def inside(path: str, parts: Collection[str]) -> str:
    """The longest of these parts that a weight lies in; "" if it lies in none.

    Example:
        >>> inside("encoder.blocks.0.weight", ["encoder", "encoder.blocks", "enc"])
        'encoder.blocks'
    """
    return max((part for part in parts if path == part or path.startswith(f"{part}.")), key=len, default="")
