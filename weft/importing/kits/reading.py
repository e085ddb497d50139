"""Read the files of other toolkits as plain data. Read next: ../torchfile.py, for files of torch.save."""

from pathlib import Path
from typing import Any

from torch import Tensor

from weft.config import text
from weft.errors import CheckpointError, ConfigError

LARGEST_TEXT = 64 << 20  # bytes


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without their ends; only a line feed ends a line."""
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST_TEXT + 1)
        if len(raw) > LARGEST_TEXT:
            raise ValueError(f"it is larger than {LARGEST_TEXT >> 20} MiB")
        found = raw.decode("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error
    return [line.removesuffix("\r") for line in (found[:-1] if found[-1] == "" else found)]


def yaml(path: Path) -> dict[str, Any]:
    """A table in YAML. Tags are read over and build nothing."""
    try:
        found = text.parse("\n".join(lines(path)), str(path), tagged=True).plain()
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path}: expected a table of settings, got {type(found).__name__}")
    return found


def table(holder: Any, name: str, place: str) -> dict[str, Any]:
    """The table under a name."""
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict):
        raise CheckpointError(
            f"{place}: expected a table {name!r}, got {type(found).__name__}; is it the right file?"
        )
    return found


def tensors(holder: Any, name: str, place: str) -> dict[str, Tensor]:
    """The tensors under a name, in float32."""
    found = table(holder, name, place) if name else holder
    if not isinstance(found, dict) or not found or not all(isinstance(one, Tensor) for one in found.values()):
        raise CheckpointError(f"{place}: expected tensors by name{f' in {name!r}' if name else ''}, got none")
    return {str(key): one.float() for key, one in found.items()}


def choice(settings: dict[str, Any], name: str, place: str, *known: Any, usual: Any = None) -> Any:
    """A setting with one of the supported values; `usual` (or the first of them) if it is not given."""
    found = settings.get(name)
    found = (known[0] if usual is None else usual) if found is None else found
    if found not in known:
        supported = " or ".join(str(one) for one in known)
        raise ConfigError(
            f"{place}: {name}: expected {supported}, got {str(found)[:60]}, which Weft does not support"
        )
    return found


def number(settings: dict[str, Any], name: str, place: str, *, usual: float | None = None) -> Any:
    """A number among settings, at least 0."""
    found = settings.get(name)
    found = usual if found is None else found
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1 << 31:
        raise CheckpointError(f"{place}: {name}: expected a number of at least 0, got {str(found)[:40]}")
    return found


def layers(settings: dict[str, Any], name: str, place: str, most: int, *, usual: int | None = None) -> int:
    """A number of layers."""
    found = number(settings, name, place, usual=usual)
    if not isinstance(found, int) or not 1 <= found <= most:
        raise CheckpointError(f"{place}: {name}: expected the layers of the checkpoint, got {found}")
    return found


def rate(settings: dict[str, Any], name: str, place: str, usual: float) -> float:
    """A dropout rate, which may be a list with one for each stage of training; the first one counts."""
    found = settings.get(name, usual)
    first = found[0] if isinstance(found, list) and found else found
    return float(number({name: first}, name, place))
