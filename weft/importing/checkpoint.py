"""Read a checkpoint directory of the `transformers` library: config.json and the weights.

A family (families/decoders.py, ...) maps each of our tensors to the ones it is made from. Missing or extra
tensors and wrong shapes are errors.
Read next: names.py, what families share; families/decoders.py.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import safetensors
import safetensors.torch
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.store import jsonfile

LARGEST_CONFIG = 1 << 20
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""File names of weights; the first that exists is read. The second is read without unpickling.

Large checkpoints have several files and an index beside them, such as model.safetensors.index.json.
"""
INDEX = ".index.json"

M = TypeVar("M", bound=nn.Module)


class TensorOrigin(NamedTuple):
    """The source of one of our tensors."""

    names: tuple[str, ...]
    make: Callable[..., Tensor]  # computes it from the tensors of these names


Origins = dict[str, TensorOrigin]  # the source of each of our tensors


class Checkpoint(NamedTuple):
    """The contents of a checkpoint directory."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    weights: str = WEIGHTS[0]  # file name

    def setting(self, *names: str, default: Any = None) -> Any:
        """The first of these settings found in config.json."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, int) and not 0 <= value <= self.largest:
                raise CheckpointError(
                    f"{self.place}: {name}: expected at most {self.largest}, the largest side of its "
                    f"tensors, got {str(value)[:20]}; is this config.json of the same checkpoint?"
                )
            if value is not None:
                return value
        if default is None:
            raise CheckpointError(f"{self.place}: has no {names[0]!r}; does it belong to this checkpoint?")
        return default

    @property
    def place(self) -> str:
        """Of the configuration, for errors."""
        return str(self.path / "config.json")

    @property
    def largest(self) -> int:
        """An upper bound on all sizes and counts in the configuration."""
        return max([len(self.tensors), *(side for one in self.tensors.values() for side in one.shape)])

    def need(self, name: str, *values: Any) -> None:
        """Check that a setting has a supported value."""
        found = self.config.get(name, values[0])
        if found not in values:
            known = ", ".join(map(str, values))
            raise ConfigError(f"{self.place}: {name}: expected one of {known}, got {found}")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a directory's configuration and tensors, as float32."""
    config = path / "config.json"
    every = [path / (name + ending) for ending in ("", INDEX) for name in WEIGHTS]
    weights = next((file for file in every if file.is_file()), every[0])
    for file in (config, weights):
        if not file.is_file():
            raise CheckpointError(
                f"{file}: no such file; give a directory with config.json and {' or '.join(WEIGHTS)} "
                "(save_pretrained of the transformers library writes one)"
            )
    settings = json_table(config, LARGEST_CONFIG)
    if settings.get("quantization_config"):
        raise ConfigError(
            f"{config}: quantization_config: expected none, quantised weights are not supported"
        )
    tensors = {name: tensor.float() for name, tensor in _tensors(weights).items()}
    return Checkpoint(path, settings, tensors, weights.name)


def json_table(path: Path, most: int = jsonfile.LARGEST) -> dict[str, Any]:
    """The table in a JSON file of at most `most` bytes."""
    try:
        found = jsonfile.read(path, most)
        if not isinstance(found, dict):
            raise ValueError(f"expected a table, got {type(found).__name__}")
        return found
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error


def prefixed(foreign: Checkpoint, prefix: str, *heads: str) -> Checkpoint:
    """The checkpoint with a prefix before its tensors' names, if it was saved without its output layer.

    Such a model (`BartModel`, `GPT2Model`) lacks the prefix that the complete model's names have.
    """
    if any(name.startswith(prefix) for name in foreign.tensors):
        return foreign
    tensors = {
        name if name.startswith(heads) else f"{prefix}{name}": one for name, one in foreign.tensors.items()
    }
    return foreign._replace(tensors=tensors)


def _shards(index: Path) -> dict[str, Tensor]:
    """The tensors of several files, as an index says: {"weight_map": {name of a tensor: file name}}."""
    try:
        content = jsonfile.read(index)
        places = content["weight_map"]
        names = sorted(set(places.values()))
        if not all(
            Path(name).name == name and Path(name).suffix in (".safetensors", ".bin") for name in names
        ):
            raise ValueError("expected names of weight files in the same directory")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{index}: cannot be read ({error!r:.200}); fetch it again") from error
    found: dict[str, Tensor] = {}
    for name in names:
        if not (index.parent / name).is_file():
            raise CheckpointError(f"{index.parent / name}: no such file; {index.name} names it, fetch it too")
        found |= {key: one for key, one in _tensors(index.parent / name).items() if places.get(key) == name}
    if missing := sorted(set(places) - set(found)):
        raise CheckpointError(
            f"{index}: {_count(missing)} not in the file that it names ({_some(missing)}); fetch it again"
        )
    return found


def _tensors(weights: Path) -> dict[str, Tensor]:
    if weights.name.endswith(INDEX):
        return _shards(weights)
    if weights.suffix == ".bin":
        found = torchfile.read_torch_file(weights)
        if not isinstance(found, dict) or not all(isinstance(one, Tensor) for one in found.values()):
            raise CheckpointError(f"{weights}: expected a state_dict, a table of tensors by name")
        return {str(name): one for name, one in found.items()}
    return safe_tensors(weights)


def safe_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file."""
    try:
        return safetensors.torch.load_file(path)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); fetch it again") from error


def fill(model: M, foreign: Checkpoint, origins: Origins, *, spare: Sequence[str] = ()) -> M:
    """Load a checkpoint's tensors into a model, and return it in evaluation mode."""
    place = foreign.path / foreign.weights
    complete(foreign.tensors, origins, place, spare=spare, hint="is config.json the one that belongs to it?")
    own = model.state_dict()
    assert own.keys() == origins.keys(), "a family maps every tensor of its model"
    for name, origin in origins.items():  # one by one, because together they may need gigabytes
        tensor = origin.make(*(foreign.tensors[each] for each in origin.names))
        if tensor.shape != own[name].shape:
            source = ", ".join(origin.names)
            raise CheckpointError(
                f"{place}: {source} gives {list(tensor.shape)} for {name}, config.json asks for "
                f"{list(own[name].shape)}; does it belong to it?"
            )
        if not own[name].is_meta:
            own[name].copy_(tensor)
    return model.eval()


def complete(
    tensors: Mapping[str, Tensor], origins: Origins, place: str | Path, *, spare: Sequence[str], hint: str
) -> None:
    """Check that the tensors are those that the origins name, no fewer and no more."""
    wanted = {name for origin in origins.values() for name in origin.names}
    missing = sorted(wanted - set(tensors))
    extra = sorted(name for name in set(tensors) - wanted if not name.endswith(tuple(spare)))
    if missing or extra:
        parts = [f"{_count(missing)} missing ({_some(missing)})"] if missing else []
        parts += [f"{_count(extra)} not part of the model ({_some(extra)})"] if extra else []
        raise CheckpointError(f"{place}: {' and '.join(parts)}; {hint}")


def _count(names: Sequence[str]) -> str:
    return "1 tensor is" if len(names) == 1 else f"{len(names)} tensors are"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
