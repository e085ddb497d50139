"""Sharded parameters (FSDP2): each process keeps its rows of every parameter, gradient and moment.

A parameter of R rows is cut along its first axis into N pieces of ceil(R / N) rows, the last ones shorter or
empty. Whole parameters are gathered for use: those of a Transformer block for that block (nn/transformer.py,
`calls`), all others for a whole pass, since the number of calls of a recurrent layer depends on the batch.
torch.distributed.fsdp.fully_shard does the work; this file defines the units, and converts between rows and
whole tensors for checkpoints. Without sharding nothing here has an effect.

Each process writes its rows as safetensors into a temporary directory, then a seal with sizes and hashes. The
first process waits for all seals, merges them into the manifest and renames the directory, so the checkpoint
appears atomically. All processes must share one file system. torch.distributed.checkpoint does the same, but
pickles its .metadata and plans; Weft uses no pickle. Any number of processes can read the checkpoint, since
the sizes of the parts show where a tensor was cut. Read next: processes.py, checkpoints.py.

Source: Rajbhandari et al. 2020 (ZeRO), stage 3; torch.distributed.fsdp.fully_shard.
"""

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.store import files, jsonfile, weights
from weft.train.feeding import Feeding, always_true

OUTER = ("loss", "carry_on")  # methods of a model that the loop calls


def shard(model: nn.Module, device: torch.device, count: int, feeding: Feeding) -> None:
    """Shard a model in place, so that this process keeps its rows of every parameter."""
    units = [module for module in model.modules() if getattr(module, "calls", ())]
    if units and not feeding.parallel and not always_true(feeding):
        raise ConfigError(
            "training.sharding: full does not support feeding words step by step; set "
            "training.feeding.parallel: true or sharding: none"
        )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    # The keys and values of a block are views, and nothing writes into them.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(device.type, (count,))
    scalars = {parameter for parameter in model.parameters() if not parameter.dim()}  # cannot be cut
    for module in (*units, model):
        fully_shard(module, mesh=mesh, ignored_params=scalars)
        for name in OUTER if module is model else getattr(module, "calls", ()):
            if hasattr(module, name):
                register_fsdp_forward_method(module, name)
        # The loss is a sum: gradients are summed here and divided by the number of all targets later. Without
        # the second line torch asks for a scaled sum, which gloo does not support.
        cast(FSDPModule, module).set_gradient_divide_factor(1.0)
        cast(FSDPModule, module).set_force_sum_reduction_for_comms(True)


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is sharded, so that this process has only some rows."""
    return hasattr(tensor, "to_local")


def local(tensor: Tensor) -> Tensor:
    """This process's rows of a sharded tensor, those that a sparse one holds, or the whole of another.

    The result shares the tensor's memory.
    """
    if tensor.is_sparse:
        return tensor._values()
    return cast(Any, tensor).to_local() if is_sharded(tensor) else tensor


def rows(whole: Tensor, like: Tensor) -> Tensor:
    """Shard a whole tensor in the same way as a parameter."""
    if not is_sharded(like) or whole.shape != like.shape:
        return whole
    from torch.distributed.tensor import DTensor

    sharded = cast(Any, like)
    each = -(-len(whole) // sharded.device_mesh.size())
    begin = sharded.device_mesh.get_local_rank() * each
    mine = whole[begin : begin + each].to(like.device)
    return DTensor.from_local(
        mine.clone(),
        sharded.device_mesh,
        sharded.placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.stride(),
    )


def restore(model: nn.Module, whole: Mapping[str, Tensor], place: str) -> None:
    """Load whole weights into a model, sharded or not."""
    own = model.state_dict()
    if not any(map(is_sharded, own.values())):
        weights.restore(model, whole, place)
        return
    weights.check_fits_model(own, whole, place)
    with torch.no_grad():
        for name, tensor in own.items():
            local(tensor).copy_(local(rows(whole[name], tensor)))


def gathered(model: nn.Module, make: Callable[[], nn.Module], *, wanted: bool) -> nn.Module | None:
    """A whole model with the weights of a sharded one; all processes must call this together."""
    whole = {}
    for name, tensor in model.state_dict().items():
        full = cast(Any, tensor).full_tensor() if is_sharded(tensor) else tensor
        if wanted:
            whole[name] = full
    if not wanted:
        return None
    made = make().to(next(model.parameters()).device)
    weights.restore(made, whole, "the sharded model")
    return made


MANIFEST = "manifest.json"
PATIENCE_SECONDS = 600.0
"""Maximum time that the first process waits for the parts of the others."""


class Shard(NamedTuple):
    """The rank of a process and the number of processes; one process if parameters are not sharded."""

    rank: int = 0
    of: int = 1


def name(stem: str, part: Shard) -> str:
    """The name of a process's file.

    Example:
        >>> name("model", Shard()), name("model", Shard(1, 2))
        ('model.safetensors', 'model-00002-of-00002.safetensors')
    """
    return f"{stem}{f'-{part.rank + 1:05}-of-{part.of:05}' if part.of > 1 else ''}.safetensors"


class Seal(jsonfile.Schema):
    """The expected size and hash of a file."""

    size: jsonfile.Count
    sha256: str


def sealed(contents: dict[str, bytes]) -> dict[str, Any]:
    """The sizes and hashes of files."""
    return {
        key: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for key, data in contents.items()
    }


def read_part(path: Path, key: str, seals: dict[str, Seal]) -> bytes:
    """Read a file of a checkpoint and verify it."""
    if key not in seals:
        raise ValueError(f"{MANIFEST} does not name {key}")
    if (path / key).is_symlink() or (path / key).stat().st_size != seals[key].size:
        raise ValueError(f"{key} is not the file that was written")
    data = (path / key).read_bytes()
    if hashlib.sha256(data).hexdigest() != seals[key].sha256:
        raise ValueError(f"{key} does not have the content that was written")
    return data


def joined(found: Sequence[dict[str, Tensor]], cut: Collection[str]) -> dict[str, Tensor]:
    """Join the parts of several processes into whole tensors."""
    chosen, tied, whole = set(cut), dict[int, Tensor](), dict[str, Tensor]()
    for key, tensor in found[0].items():
        if key not in chosen:
            whole[key] = tensor
            continue
        if id(tensor) not in tied:  # a tensor with two names stays one tensor
            tied[id(tensor)] = torch.cat([part[key] for part in found])
        whole[key] = tied[id(tensor)]
    return whole


def write_part(path: Path, contents: dict[str, bytes], part: Shard) -> None:
    """Write this process's files of a checkpoint; the first process returns when all parts are written."""
    temporary = path.with_name(f"{files.WRITING}{path.name}")
    temporary.mkdir(parents=True, exist_ok=True)
    for key, data in contents.items():
        files.write(temporary / key, data)
    seals = sealed(contents)
    if part.rank:
        files.replace(temporary / _seal_of(part.rank), files.to_json(seals))
        return
    for rank in range(1, part.of):
        other = temporary / _seal_of(rank)
        _await(other, rank)
        parts = jsonfile.load(other, dict[str, Seal], "start the training again")
        seals |= {key: jsonfile.plain(seal) for key, seal in parts.items()}
        other.unlink()
    files.write(temporary / MANIFEST, files.to_json(seals))
    files.flush_directory(temporary)
    if path.exists():
        files.remove_directory(path)
    os.rename(temporary, path)
    files.flush_directory(path.parent)


def _seal_of(rank: int) -> str:
    return f"seal-{rank}.json"


def _await(file: Path, rank: int) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not file.exists():
        if time.monotonic() > until:
            raise CheckpointError(
                f"{file}: process {rank} did not write its part within {PATIENCE_SECONDS:.0f} s; all "
                "processes must share one file system, or set training.sharding: none"
            )
        time.sleep(0.02)
