"""Read the files of other toolkits as plain data. Read next: ../torchfile.py, for files of torch.save."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from weft.config import text
from weft.errors import CheckpointError, ConfigError

LARGEST_TEXT = 64 << 20  # bytes
T = TypeVar("T")


class ToolkitSettings(NamedTuple):
    """A toolkit's settings by name."""

    values: dict[str, Any]
    place: str  # their file, for errors

    def get(self, name: str, usual: Any = None) -> Any:
        """The setting as it is."""
        return self.values.get(name, usual)

    def table(self, name: str) -> "ToolkitSettings":
        """The table under a name."""
        return ToolkitSettings(table(self.values, name, self.place), self.place)

    def part(self, name: str) -> "ToolkitSettings":
        """The table under a name, empty if there is none."""
        found = self.values.get(name)
        return ToolkitSettings(found if isinstance(found, dict) else {}, self.place)

    def flag(self, name: str, usual: bool = False) -> bool:
        """Whether a switch is on."""
        return bool(self.values.get(name, usual))

    def choice(self, name: str, *known: Any, usual: Any = None) -> Any:
        """A setting with one of the supported values; `usual` (or the first of them) if it is not given."""
        found = self.values.get(name)
        found = (known[0] if usual is None else usual) if found is None else found
        if found not in known:
            supported = " or ".join(str(one) for one in known)
            raise ConfigError(
                f"{self.place}: {name}: expected {supported}, got {str(found)[:60]}, "
                "which Weft does not support"
            )
        return found

    def check(self, known: Mapping[str, tuple[Any, ...]]) -> None:
        """Check that settings have supported values; the first is that of a setting that is not given."""
        for name, values in known.items():
            self.choice(name, *values)

    def number(self, name: str, usual: float | None = None) -> Any:
        """A number of at least 0."""
        found = self.values.get(name)
        found = usual if found is None else found
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1 << 31:
            raise CheckpointError(
                f"{self.place}: {name}: expected a number of at least 0, got {str(found)[:40]}"
            )
        return found

    def layers(self, name: str, most: int, usual: int | None = None) -> int:
        """A number of layers."""
        found = self.number(name, usual)
        if not isinstance(found, int) or not 1 <= found <= most:
            raise CheckpointError(f"{self.place}: {name}: expected the layers of the checkpoint, got {found}")
        return found

    def num_heads(self, name: str, width: str) -> Any:
        """A number of heads, which divides the setting of the width."""
        found, size = self.number(name), self.number(width)
        if not 1 <= found <= size or size % found:
            raise CheckpointError(
                f"{self.place}: {name}: expected a divisor of {width} {size}, got {found}; "
                "does it belong to these parameters?"
            )
        return found

    def order(self, before: str, after: str, known: Mapping[tuple[str, str], T]) -> T:
        """What the steps before and after a sublayer mean together."""
        steps = str(self.get(before) or ""), str(self.get(after) or "")
        if steps not in known:
            raise ConfigError(
                f"{self.place}: {before} and {after}: expected "
                f"{', '.join(f'{first!r} and {second!r}' for first, second in known)}, got "
                f"{steps[0][:20]!r} and {steps[1][:20]!r}, which Weft does not support"
            )
        return known[steps]

    def rate(self, name: str, usual: float) -> float:
        """A dropout rate, or the first one of a list with one for each stage of training."""
        found = self.values.get(name, usual)
        first = found[0] if isinstance(found, list) and found else found
        return float(ToolkitSettings({name: first}, self.place).number(name))


class ToolkitModel(NamedTuple):
    """A toolkit's model: its settings, and its weights by name."""

    settings: ToolkitSettings
    state: dict[str, Tensor]
    place: str  # of the weights


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


def yaml(path: Path) -> ToolkitSettings:
    """The table in a YAML file."""
    return parsed_yaml("\n".join(lines(path)), str(path))


def parsed_yaml(content: str, place: str) -> ToolkitSettings:
    """A table in YAML. Tags are read over and build nothing."""
    try:
        found = text.parse(content, place, tagged=True).plain()
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{place}: expected a table of settings, got {type(found).__name__}")
    return ToolkitSettings(found, place)


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
