"""Read and write weights as safetensors files, and build the model for them; tied weights are stored once.

A downloaded run may pair a recipe for a model of terabytes with weights of a few bytes; it is refused.
Read next: ../train/checkpoints.py, ../train/finish.py.
"""

import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.errors import CheckpointError, ConfigError, WeftError
from weft.store import jsonfile
from weft.store.digests import Fits

CYCLES = "cycles"
"""Folder in a run with the weights at the ends of cycles of the learning rate; each opens as a run."""

START = "start.safetensors"
"""File in a run with weights to start training from, such as those of an imported model."""

SPARE = 2**26  # numbers that building may allocate besides the weights: position tables, copies

TIMES = 4  # numbers that building may allocate per number in the weights

_MAKERS = {
    getattr(torch, name) for name in ("empty", "zeros", "ones", "rand", "randn", "full", "eye", "arange")
} | {getattr(Tensor, name) for name in ("new_empty", "new_zeros", "new_ones", "new_full")}


class _Header(jsonfile.Schema, rename={"about": "__metadata__"}):
    about: dict[str, str] = jsonfile.field(default_factory=dict)


class _About(jsonfile.Schema):
    ties: dict[str, str] = jsonfile.field(default_factory=dict)
    crc32: int | None = None
    fits: Fits = jsonfile.field(default_factory=Fits)


class StoredWeights(NamedTuple):
    """The content of a file of weights."""

    tensors: dict[str, Tensor]
    fits: Fits  # what they belong to; empty if an earlier version of Weft wrote them


class CopiedWeights(NamedTuple):
    """A copy of a state dict, with its own memory."""

    kept: dict[str, Tensor]  # on the CPU, each with its own memory
    ties: dict[str, str]  # other names of tied tensors, with the name under which the tensor is kept


def copied(weights: Mapping[str, Tensor]) -> CopiedWeights:
    """Copy a state dict: cuDNN stores an RNN's weights as views of one block, which safetensors rejects."""
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
    return CopiedWeights(kept, ties)


def pack(weights: Mapping[str, Tensor] | CopiedWeights, **metadata: Any) -> bytes:
    """A state dict as the bytes of a safetensors file.

    Tensors that share memory are stored under their first name; the other names go to `ties` in the metadata.
    The metadata is a single JSON string, because safetensors writes several in any order, and includes a
    checksum, which safetensors does not have.
    """
    kept, ties = weights if isinstance(weights, CopiedWeights) else copied(weights)
    about = {"ties": ties, "crc32": _checksum(safetensors.torch.save(kept)), **metadata}
    return safetensors.torch.save(kept, {"weft": json.dumps(about)})


def unpack(data: bytes) -> dict[str, Tensor]:
    """The state dict in the bytes from `pack`."""
    return unpack_stored(data).tensors


def unpack_stored(data: bytes) -> StoredWeights:
    """The state dict in the bytes from `pack`, and what it belongs to."""
    try:
        tensors = safetensors.torch.load(data)
        header = jsonfile.decode(data[8 : 8 + int.from_bytes(data[:8], "little")], _Header)
        about = jsonfile.decode(header.about.get("weft", "{}"), _About)
        if about.crc32 is not None and about.crc32 != _checksum(data):
            raise ValueError("the checksum of the weights does not match")
        for name, kept in about.ties.items():
            if name in tensors or kept not in tensors:
                raise ValueError(f"its ties name {name} as another name of {kept}, which does not fit")
        tied = {name: tensors[kept] for name, kept in about.ties.items()}
        return StoredWeights({**tensors, **tied}, about.fits)
    except safetensors.SafetensorError as error:
        raise ValueError(f"not a safetensors file of Weft: {error}") from error


def _checksum(data: bytes) -> int:
    """The checksum of the data after the header."""
    return zlib.crc32(memoryview(data)[8 + int.from_bytes(data[:8], "little") :])


ORIGINAL, LOW_RANK = ".parametrizations.weight.original", ".parametrizations.weight.0."
"""Ends of the names of a matrix, and of the narrow matrices that are added to it; see train/tuned.py."""


def plus_low_rank(weight: Tensor, a: Tensor, b: Tensor, scale: Tensor) -> Tensor:
    """W + s B A, for W [O, I], A [R, I] and B [O, R]."""
    return weight + scale * (b @ a)


def merged(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in which what was added to a matrix is part of it."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        place = name.removesuffix(ORIGINAL)
        if place != name:
            parts = [tensors.get(f"{place}{LOW_RANK}{part}") for part in ("a", "b", "scale")]
            if any(part is None for part in parts):
                raise ValueError(f"{name} lacks the matrices that are added to it")
            found[f"{place}.weight"] = plus_low_rank(tensor, *parts)  # type: ignore[arg-type]
        elif LOW_RANK not in name:
            found[name] = tensor
    return found


def load(path: Path) -> dict[str, Tensor]:
    """Load the weights of a file, on the CPU."""
    return read(path).tensors


def read(path: Path) -> StoredWeights:
    """Read a file of weights, on the CPU."""
    try:
        found = unpack_stored(path.read_bytes())
        found = found._replace(tensors=merged(found.tensors))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); train the run first") from error
    except MemoryError:
        raise CheckpointError(
            f"{path}: has {path.stat().st_size:,} bytes, more than fits into memory; is it the right file?"
        ) from None
    except ValueError as error:
        raise CheckpointError(
            f"{path}: is damaged ({error}); delete it and run `weft train` again"
        ) from error
    check_finite(found.tensors, str(path))
    return found


def check_finite(tensors: Mapping[str, Tensor], place: str, hint: str = "") -> None:
    """Check that weights are numbers: with NaN in them a model answers all the same."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not tensor.numel():
            continue
        # Both are NaN if any number is: one pass, 15 times as fast as isfinite.
        if all(bool(torch.isfinite(one)) for one in torch.aminmax(tensor.detach())):
            continue
        count = int((~torch.isfinite(tensor)).sum())
        raise CheckpointError(
            f"{place}: {count:,} of {tensor.numel():,} numbers of {name} are not finite (NaN or infinite), "
            f"so the model cannot answer; {hint or NOT_FINITE}"
        )


NOT_FINITE = "restore the file from a copy, or train again with a lower training.optimiser.lr"


def metadata(path: Path) -> dict[str, Any]:
    """Metadata of a file of weights, such as their update; empty if it cannot be read."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            return jsonfile.decode((file.metadata() or {}).get("weft", "{}"), dict[str, Any])
    except (OSError, ValueError, MemoryError, safetensors.SafetensorError):
        return {}


class Refit(jsonfile.Schema):
    """What the weights of a run say if they were trained on the validation examples too; see train/finish.py.

    planned: updates of the whole training by its limits; 0 without limits.
    chosen: SHA-256 of the weights before, which the validation scores and a calibration belong to.
    """

    planned: int
    chosen: str


def refit_of(file: Path) -> Refit | None:
    """What a file of weights says of its training on the validation examples too; None without one."""
    try:
        return jsonfile.decode(json.dumps(metadata(file).get("refit")), Refit | None)  # type: ignore[arg-type]
    except ValueError:
        return None


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def restore(model: nn.Module, weights: Mapping[str, Tensor], place: str, *, hint: str | None = None) -> None:
    """Load weights into a model."""
    check_fits_model(model.state_dict(), weights, place, hint=hint or OTHER_RUN)
    with torch.no_grad():
        model.load_state_dict(weights)


OTHER_RUN = "use the recipe it was trained with, or another --run"


def check_fits_model(
    own: Mapping[str, Tensor], weights: Mapping[str, Tensor], place: str, *, hint: str = OTHER_RUN
) -> None:
    """Check that weights belong to a model: the same names, shapes and types."""
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
            f"{place}: contains a different model from the recipe ({', '.join(wrong[:3])}{more}); {hint}"
        )


def build(make: Callable[[], nn.Module]) -> nn.Module:
    """Build a model."""
    try:
        return make()
    except WeftError:
        raise
    except (RuntimeError, ArithmeticError, LookupError, ValueError) as error:
        if isinstance(error, NotImplementedError) or "can't allocate memory" in str(error):
            raise
        why = str(error).partition("\n")[0][:200]
        raise ConfigError(f"model: cannot be built with these sizes ({why}); change them") from error


def build_for(make: Callable[[], nn.Module], weights: Mapping[str, Tensor], place: str) -> nn.Module:
    """Build a model for stored weights."""
    stored = sum(tensor.numel() for tensor in weights.values())
    try:
        with _Counted(TIMES * stored + SPARE):
            return build(make)
    except _TooMuch:
        raise CheckpointError(
            f"{place}: contains a different model from the recipe ({stored:,} numbers, the recipe describes "
            "a far larger one); use the recipe it was trained with"
        ) from None


class _TooMuch(Exception):
    """The model allocates more numbers than allowed."""


class _Counted(TorchFunctionMode):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func in _MAKERS:
            self._left -= math.prod(_sizes(given.get("size", args)))
            if self._left < 0:
                raise _TooMuch
        return func(*args, **given)


def _sizes(args: Any) -> list[int]:
    """The sizes in the arguments of a tensor constructor: the integers, or the first list of them."""
    whole = [one for one in args if not isinstance(one, Tensor)]
    sizes = whole[0] if whole and isinstance(whole[0], tuple | list) else whole
    return [one for one in sizes if isinstance(one, int)]
