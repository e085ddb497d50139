"""Weights in a safetensors file: tied weights are stored once and named, and there is nothing but tensors.

Read next: checkpoints.py, averaging.py.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from weft import jsonfile
from weft.errors import CheckpointError

START = "start.safetensors"
"""In a run: weights that training begins with, where there are such; those of an imported model."""


class _Header(jsonfile.Form, rename={"about": "__metadata__"}):
    about: dict[str, str] = jsonfile.field(default_factory=dict)


class _About(jsonfile.Form):
    ties: dict[str, str] = jsonfile.field(default_factory=dict)
    crc32: int | None = None


class Copied(NamedTuple):
    """A state dict that nothing else changes."""

    kept: dict[str, Tensor]
    """On the CPU, each with memory of its own."""

    ties: dict[str, str]
    """Names of what is the same memory as another one, and the name under which that is kept."""


def copied(weights: Mapping[str, Tensor]) -> Copied:
    """A copy: cuDNN keeps an RNN's weights as views of one block, which safetensors refuses."""
    first: dict[tuple, str] = {}
    kept: dict[str, Tensor] = {}
    ties: dict[str, str] = {}
    for name, tensor in weights.items():
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in first:
            ties[name] = first[place]
        else:
            first[place] = name
            kept[name] = tensor.detach().to("cpu", copy=True).contiguous()
    return Copied(kept, ties)


def pack(weights: Mapping[str, Tensor] | Copied, **metadata: str) -> bytes:
    """A state dict as the bytes of a safetensors file.

    Tensors that are the same memory are stored under the first name, and the other names stand in the
    metadata as `ties`, which is one string of JSON, because safetensors writes several in any order; a
    checksum stands with them, because safetensors has none.
    """
    kept, ties = weights if isinstance(weights, Copied) else copied(weights)
    about = {"ties": ties, "crc32": _checksum(safetensors.torch.save(kept)), **metadata}
    return safetensors.torch.save(kept, {"weft": json.dumps(about)})


def unpack(data: bytes) -> dict[str, Tensor]:
    """The state dict that `pack` was given.

    Raises:
        ValueError: the bytes are not such a file.
    """
    try:
        tensors = safetensors.torch.load(data)
        header = jsonfile.decode(data[8 : 8 + int.from_bytes(data[:8], "little")], _Header)
        about = jsonfile.decode(header.about.get("weft", "{}"), _About)
        if about.crc32 is not None and about.crc32 != _checksum(data):
            raise ValueError("the weights are not those that were written")
        for name, kept in about.ties.items():
            if name in tensors or kept not in tensors:
                raise ValueError(f"its ties name {name} as another name of {kept}, which does not fit")
        return {**tensors, **{name: tensors[kept] for name, kept in about.ties.items()}}
    except safetensors.SafetensorError as error:
        raise ValueError(f"not a safetensors file of Weft: {error}") from error


def _checksum(data: bytes) -> int:
    """Of what follows the header."""
    return zlib.crc32(memoryview(data)[8 + int.from_bytes(data[:8], "little") :])


def load(path: Path) -> dict[str, Tensor]:
    """The weights of a file, on the CPU.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        return unpack(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); train the run first") from error
    except MemoryError:
        raise CheckpointError(
            f"{path}: has {path.stat().st_size:,} bytes, more than there is memory for; is it the right file?"
        ) from None
    except ValueError as error:
        raise CheckpointError(
            f"{path}: is damaged ({error}); delete it and run `weft train` again"
        ) from error


def metadata(path: Path) -> dict[str, Any]:
    """What stands beside the weights, such as the update they are from; nothing if it cannot be read."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            return jsonfile.decode((file.metadata() or {}).get("weft", "{}"), dict[str, Any])
    except (OSError, ValueError, safetensors.SafetensorError):
        return {}


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def restore(model: nn.Module, weights: Mapping[str, Tensor], place: str) -> None:
    """Put weights into a model.

    Args:
        model: built from the recipe.
        weights: as `load` gives them.
        place: where they are from, for the error.

    Raises:
        CheckpointError: they are those of another model.
    """
    check(model.state_dict(), weights, place)
    with torch.no_grad():
        model.load_state_dict(weights)


def check(own: Mapping[str, Tensor], weights: Mapping[str, Tensor], place: str) -> None:
    """See that weights are those of a model: the same names, shapes and types.

    Raises:
        CheckpointError: they are not.
    """
    missing = [name for name in own if name not in weights]
    foreign = [name for name in weights if name not in own]
    both = [name for name in own if name in weights]
    other = [name for name in both if own[name].shape != weights[name].shape]
    types = [name for name in both if own[name].dtype != weights[name].dtype]
    if missing or foreign or other or types:
        wrong = [f"{name} is missing" for name in missing]
        wrong += [f"{name} is not in the model" for name in foreign]
        wrong += [f"{name} is {list(weights[name].shape)}, not {list(own[name].shape)}" for name in other]
        wrong += [f"{name} is {_type(weights[name])}, not {_type(own[name])}" for name in types]
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise CheckpointError(
            f"{place}: holds another model than the recipe ({', '.join(wrong[:3])}{more}); "
            "use the recipe it was trained with, or another --run"
        )
