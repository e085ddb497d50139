"""A checkpoint written by several processes: each writes its rows as safetensors into one directory.

Each process writes its files into a temporary directory, then a seal with their sizes and hashes. The first
process waits for all seals, merges them into the manifest and renames the directory, so the checkpoint
appears atomically and no process sends its rows to another. All processes must share one file system.

torch.distributed.checkpoint does the same, but stores .metadata as a pickle and exchanges plans as pickles,
even with its safetensors writer; Weft uses no pickle. The sizes of the parts show where a tensor was cut, so
any number of processes, even one, can read the checkpoint. Read next: sharding.py, checkpoints.py.
"""

import hashlib
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.store import files, jsonfile

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
