"""Read a file of `torch.save` as plain data, without unpickling: nothing is imported, called or assigned.

A pickle is a program that builds objects by calling functions, so `torch.load` of a stranger's file can run
a stranger's code. Here its opcodes only build tensors, dicts, lists, tuples, sets, texts and numbers. The few
calls that such a file needs are known by name and done here; any other is refused. Read next: pickled.py, the
opcodes; checkpoint.py, which uses this.
"""

import math
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.importing.pickled import Name, Refused, Storage, interpret, key, mapping

LARGEST_PICKLE = 256 << 20  # bytes; only tensors may be larger


def read(path: Path) -> Any:
    """The contents of a file that `torch.save` of PyTorch 1.6 or later wrote.

    Args:
        path: the file.

    Returns:
        Tensors, and dict, list, tuple, set, str, bytes, int, float, bool, None. An argparse.Namespace becomes
        a dict. Tensors that share memory still do.

    Raises:
        CheckpointError: the file cannot be read, is damaged, or contains anything else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(archive).read()
    except Refused as error:
        raise CheckpointError(f"{path}: {error}") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise CheckpointError(
            f"{path}: expected a file of torch.save of PyTorch 1.6 or later ({error}); load it there and "
            "save it again with safetensors"
        ) from error


class _Archive:
    """The zip archive, and the storages that were read from it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        names = archive.namelist()
        found = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(found) != 1:
            raise Refused("expected one data.pkl in the archive; is this a file of torch.save?")
        self.folder = found[0].removesuffix("data.pkl")
        if f"{self.folder}byteorder" in names and self.content("byteorder", len("little")) != b"little":
            raise Refused("expected little-endian numbers; save it again on a little-endian machine")
        self.storages: dict[tuple[str, torch.dtype], Tensor] = {}

    def read(self) -> Any:
        """The contents."""
        program = self.content("data.pkl", LARGEST_PICKLE)
        try:
            return interpret(program, self.call)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise Refused(
                f"is damaged ({type(error).__name__}: {str(error)[:80]}); fetch it again"
            ) from error

    def content(self, name: str, most: int) -> bytes:
        """A file of the archive, which `torch.save` never compresses.

        Raises:
            Refused: it is compressed, or larger than `most` bytes.
        """
        info = self.archive.getinfo(f"{self.folder}{name}")
        if info.compress_type != zipfile.ZIP_STORED:
            raise Refused(f"{name}: expected no compression; is this a file of torch.save?")
        if info.file_size > most:
            raise Refused(f"{name}: expected at most {most:,} bytes, got {info.file_size:,}")
        return self.archive.read(info)  # zipfile checks the checksum

    def call(self, name: Name, args: tuple[Any, ...]) -> Any:
        """Do what the pickle would call.

        Raises:
            Refused: it is not one of the known calls.
        """
        match str(name), args:
            case "collections.OrderedDict" | "builtins.dict" | "argparse.Namespace", ():
                return {}
            case "collections.OrderedDict", (list() as pairs,):
                return mapping([one for pair in pairs for one in pair])
            case "builtins.set" | "__builtin__.set" | "builtins.frozenset", (list() as items,):
                return set(map(key, items))
            case "torch.Size", (tuple() as sizes,):
                return sizes
            case "torch.device", (str() as kind, *_):
                return kind
            case "_codecs.encode", (str() as text, "latin1"):  # bytes in protocol 2
                return text.encode("latin1")
            case "torch._utils._rebuild_parameter", (Tensor() as tensor, *_):
                return tensor
            case "torch._utils._rebuild_tensor_v2", (
                Storage() as at,
                offset,
                tuple() as sizes,
                tuple() as steps,
                *_,
            ):
                return self.tensor(at, offset, sizes, steps)
        raise Refused(f"expected only tensors and plain data, got a call of {name}; nothing was run")

    def tensor(self, at: Storage, offset: Any, sizes: tuple[Any, ...], steps: tuple[Any, ...]) -> Tensor:
        """A view of a storage.

        Raises:
            Refused: it does not fit into the storage.
        """
        flat = self.storage(at)
        whole = all(type(one) is int and one >= 0 for one in (offset, *sizes, *steps))
        if not whole or len(sizes) != len(steps):
            raise Refused("a tensor has impossible sizes; fetch the file again")
        last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if 0 not in sizes and (last >= len(flat) or math.prod(sizes) > len(flat)):
            raise Refused(f"a tensor of {list(sizes)} is larger than its storage of {len(flat)} numbers")
        return flat.as_strided(sizes, steps, offset)

    def storage(self, at: Storage) -> Tensor:
        """A storage as a flat tensor; always the same one, so that shared memory stays shared."""
        place = at.key, at.dtype
        if place not in self.storages:
            if not at.key.isdigit():
                raise Refused(f"expected a number as the name of a storage, got {at.key[:40]!r}")
            size = at.size * at.dtype.itemsize
            raw = bytearray(self.content(f"data/{at.key}", size))
            if len(raw) != size:
                raise Refused(f"storage {at.key}: expected {size:,} bytes, got {len(raw):,}")
            empty = torch.empty(0, dtype=at.dtype)
            self.storages[place] = torch.frombuffer(raw, dtype=at.dtype) if raw else empty
        return self.storages[place]
