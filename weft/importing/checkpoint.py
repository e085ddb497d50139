"""Read a checkpoint directory of the `transformers` library: config.json and the weights.

A family (gpt2.py, bert.py, ...) maps each of our tensors to the ones it is made from. Missing or extra
tensors and wrong shapes are errors.
Read next: names.py, what families share.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from weft import jsonfile
from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile

LARGEST_CONFIG = 1 << 20
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""File names of weights; the first that exists is read. The second is read without unpickling."""


class Origin(NamedTuple):
    """The source of one of our tensors."""

    names: tuple[str, ...]
    make: Callable[..., Tensor]  # computes it from the tensors of these names


Origins = Mapping[str, Origin]


class Foreign(NamedTuple):
    """The contents of a checkpoint directory."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    weights: str = WEIGHTS[0]  # file name

    def setting(self, *names: str, default: Any = None) -> Any:
        """The first of these settings found in config.json.

        Raises:
            CheckpointError: there is none and no default, or it is implausibly large.
        """
        for name in names:
            value = self.config.get(name)
            if isinstance(value, int) and not 0 <= value <= self.largest:
                raise CheckpointError(
                    f"{self.path / 'config.json'}: {name}: expected at most {self.largest}, the largest "
                    f"side of its tensors, got {str(value)[:20]}; "
                    "is this config.json of the same checkpoint?"
                )
            if value is not None:
                return value
        if default is None:
            raise CheckpointError(
                f"{self.path / 'config.json'}: has no {names[0]!r}; is it the one of this checkpoint?"
            )
        return default

    @property
    def largest(self) -> int:
        """An upper bound on all sizes and counts in the configuration."""
        return max([len(self.tensors), *(side for one in self.tensors.values() for side in one.shape)])

    def need(self, name: str, *values: Any) -> None:
        """Check that a setting has a supported value.

        Raises:
            ConfigError: says what was found and what is supported.
        """
        found = self.config.get(name, values[0])
        if found not in values:
            known = ", ".join(map(str, values))
            raise ConfigError(f"{self.path / 'config.json'}: {name}: expected one of {known}, got {found}")


def read(path: Path) -> Foreign:
    """Read a directory's configuration and tensors, as float32.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    config = path / "config.json"
    weights = next((path / name for name in WEIGHTS if (path / name).is_file()), path / WEIGHTS[0])
    for file in (config, weights):
        if not file.is_file():
            raise CheckpointError(
                f"{file}: no such file; give a directory with config.json and {' or '.join(WEIGHTS)} "
                "(save_pretrained of the transformers library writes one)"
            )
    try:
        settings = jsonfile.read(config, LARGEST_CONFIG)
        if not isinstance(settings, dict):
            raise ValueError("expected a table of settings")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{config}: cannot be read ({error}); fetch it again") from error
    tensors = {name: tensor.float() for name, tensor in _tensors(weights).items()}
    return Foreign(path, settings, tensors, weights.name)


def _tensors(weights: Path) -> dict[str, Tensor]:
    if weights.suffix == ".bin":
        found = torchfile.read(weights)
        if not isinstance(found, dict) or not all(isinstance(one, Tensor) for one in found.values()):
            raise CheckpointError(f"{weights}: expected a state_dict, a table of tensors by name")
        return {str(name): one for name, one in found.items()}
    try:
        return safetensors.torch.load_file(weights)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{weights}: cannot be read ({error}); fetch it again") from error


def fill(model: nn.Module, foreign: Foreign, origins: Origins, *, spare: Sequence[str] = ()) -> None:
    """Load a checkpoint's tensors into a model.

    Args:
        model: built from the configuration. On the device `meta` it is checked but not filled.
        foreign: the checkpoint.
        origins: the source of each name in the model's state_dict.
        spare: suffixes of tensors that may be present but are not needed: second names of tied tensors,
            tables that the model computes.

    Raises:
        CheckpointError: tensors are missing, extra or of another shape.
    """
    place = foreign.path / foreign.weights
    wanted = {name for origin in origins.values() for name in origin.names}
    missing = sorted(wanted - set(foreign.tensors))
    extra = sorted(name for name in set(foreign.tensors) - wanted if not name.endswith(tuple(spare)))
    if missing or extra:
        parts = [f"{_count(missing)} missing ({_some(missing)})"] if missing else []
        parts += [f"{_count(extra)} not part of the model ({_some(extra)})"] if extra else []
        raise CheckpointError(f"{place}: {' and '.join(parts)}; is config.json the one that belongs to it?")
    own = model.state_dict()
    state = {
        name: origin.make(*(foreign.tensors[each] for each in origin.names))
        for name, origin in origins.items()
    }
    for name, tensor in state.items():
        if tensor.shape != own[name].shape:
            source = ", ".join(origins[name].names)
            raise CheckpointError(
                f"{place}: {source} gives {list(tensor.shape)} for {name}, config.json asks for "
                f"{list(own[name].shape)}; is it the one that belongs to it?"
            )
    if not any(tensor.is_meta for tensor in own.values()):
        with torch.no_grad():
            model.load_state_dict(state)


def _count(names: Sequence[str]) -> str:
    return "1 tensor is" if len(names) == 1 else f"{len(names)} tensors are"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
