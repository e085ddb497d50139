"""Read a file of `torch.save` as plain data, without unpickling: nothing is imported, called or assigned.

A pickle is a program that builds objects by calling functions, so `torch.load` of a stranger's file can run
a stranger's code. Here its opcodes only build tensors, dicts, lists, tuples, sets, texts and numbers. The few
calls that such a file needs are known by name and done here. An object of a library that translation toolkits
keep in their checkpoints becomes a `Record`, its attributes without its class; any other call is refused.
Settings are a dict or records of omegaconf, whose values are nodes and whose choices are enums: `settings`.

`torch.load(weights_only=True)` runs no code either, but its memory and time have no bound: a file of 387
bytes makes it allocate 2 GiB (a call of bytearray), or hash a key of nested tuples forever, which Ctrl-C
does not stop. With `mmap`, compressed tensors become other numbers, silently. Before PyTorch 2.10 a file
could also corrupt its memory (CVE-2026-24747).
Read next: pickled.py, the opcodes; checkpoint.py, which uses this.
"""

import math
import os
import zipfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.importing.pickled import Name, NotPlainData, Record, Storage, interpret, key, mapping

RECORDED = ("omegaconf", "fairseq", "torchtext", "onmt", "eole", "joeynmt", "numpy", "typing")
"""Packages whose objects become records."""

TYPES = frozenset({"bool", "int", "long", "float", "str", "unicode", "bytes", "dict", "list", "tuple", "set"})
"""Built-in types whose names may be part of a record."""


def inert(name: Name) -> bool:
    """Whether a name may be part of the contents, as a `Name`."""
    if name.module in ("builtins", "__builtin__"):
        return name.name in TYPES
    return name.module.partition(".")[0] in RECORDED


class Contents(ABC):
    """Does what a pickle would call."""

    @abstractmethod
    def storage(self, at: Storage) -> Tensor:
        """A storage as a flat tensor; always the same one, so that shared memory stays shared."""

    def call(self, name: Name, args: tuple[Any, ...]) -> Any:
        """Do what the pickle would call."""
        match str(name), args:
            case "collections.OrderedDict" | "builtins.dict" | "argparse.Namespace", ():
                return {}
            case "collections.Counter", (dict() as counts,):
                return counts
            case "collections.defaultdict", (Name() as factory,) if inert(factory):
                return {}
            case "functools.partial", (Name() as called,) if inert(called):
                return Record(str(name))
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
        if name.module.partition(".")[0] in RECORDED:
            return Record(str(name), args)
        raise NotPlainData(f"expected only tensors and plain data, got a call of {name}; nothing was run")

    def tensor(self, at: Storage, offset: Any, sizes: tuple[Any, ...], steps: tuple[Any, ...]) -> Tensor:
        """A view of a storage."""
        flat = self.storage(at)
        whole = all(type(one) is int and one >= 0 for one in (offset, *sizes, *steps))
        if not whole or len(sizes) != len(steps):
            raise NotPlainData("a tensor has impossible sizes; fetch the file again")
        last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if 0 not in sizes and (last >= len(flat) or math.prod(sizes) > len(flat)):
            raise NotPlainData(f"a tensor of {list(sizes)} is larger than its storage of {len(flat)} numbers")
        return flat.as_strided(sizes, steps, offset)


LARGEST_PICKLE = 256 << 20  # bytes; only tensors may be larger


def read_torch_file(path: Path) -> Any:
    """The contents of a file that `torch.save` wrote, of PyTorch 0.4 or later: tensors and plain data.

    An argparse.Namespace becomes a dict, an object of the packages RECORDED a `Record`, one of their classes
    a `Name`. Tensors that share memory still do.
    """
    try:
        with open(path, "rb") as file:
            if is_old(file):
                return OldFile(file).read()
            with zipfile.ZipFile(file) as archive:
                return _Archive(archive).read()
    except NotPlainData as error:
        raise CheckpointError(f"{path}: {error}") from error
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: is damaged ({type(error).__name__}: {str(error)[:80]}); fetch it again"
        ) from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise CheckpointError(
            f"{path}: expected a file of torch.save ({error}); load it where it was made and save it again "
            "with safetensors"
        ) from error


def program(path: Path, most: int = 1 << 20) -> bytes:
    """The beginning of the pickle in a file of `torch.save`, uninterpreted; empty for other files.

    The names of a checkpoint's parts are in it, so that its toolkit can be recognised.
    """
    try:
        with open(path, "rb") as start:
            if is_old(start):
                return start.read(most)
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(name) as file:
                return file.read(most)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, StopIteration):
        return b""


class _Archive(Contents):
    """The zip archive, and the storages that were read from it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        names = archive.namelist()
        found = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(found) != 1:
            raise NotPlainData("expected one data.pkl in the archive; is this a file of torch.save?")
        self.folder = found[0].removesuffix("data.pkl")
        if f"{self.folder}byteorder" in names and self.content("byteorder", len("little")) != b"little":
            raise NotPlainData("expected little-endian numbers; save it again on a little-endian machine")
        self.storages: dict[tuple[str, torch.dtype], Tensor] = {}

    def read(self) -> Any:
        return interpret(self.content("data.pkl", LARGEST_PICKLE), self.call, inert)

    def content(self, name: str, most: int) -> bytes:
        """A file of the archive, which `torch.save` never compresses."""
        info = self.archive.getinfo(f"{self.folder}{name}")
        if info.compress_type != zipfile.ZIP_STORED:
            raise NotPlainData(f"{name}: expected no compression; is this a file of torch.save?")
        if info.file_size > most:
            raise NotPlainData(f"{name}: expected at most {most:,} bytes, got {info.file_size:,}")
        return self.archive.read(info)  # zipfile checks the checksum

    def storage(self, at: Storage) -> Tensor:
        place = at.key, at.dtype
        if place not in self.storages:
            if not at.key.isdigit():
                raise NotPlainData(f"expected a number as the name of a storage, got {at.key[:40]!r}")
            size = at.size * at.dtype.itemsize
            raw = bytearray(self.content(f"data/{at.key}", size))
            if len(raw) != size:
                raise NotPlainData(f"storage {at.key}: expected {size:,} bytes, got {len(raw):,}")
            empty = torch.empty(0, dtype=at.dtype)
            self.storages[place] = torch.frombuffer(raw, dtype=at.dtype) if raw else empty
        return self.storages[place]


OLD_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the opcodes of 0x1950a86a20f9469cfc6c
OLD_BEGIN = 32  # bytes within which it is
OLD_VERSION = 1001
OLD_COUNT = 8  # bytes of the count before a storage


class OldFile(Contents):
    """A file that torch.save wrote before PyTorch 1.6, and the storages that its contents refer to.

    It is a sequence of pickles: a magic number, the version of the format, the machine, the contents, the
    names of the storages; then each storage after the count of its numbers.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.room = os.fstat(file.fileno()).st_size  # bytes that storages can have
        self.storages: dict[str, Tensor] = {}

    def read(self) -> Any:
        """The contents."""
        interpret(self.file, self.call)  # the magic number
        version, machine = interpret(self.file, self.call), interpret(self.file, self.call)
        if version != OLD_VERSION or machine.get("little_endian") is not True:
            raise NotPlainData("expected format 1001 and little-endian numbers; save it again")
        found = interpret(self.file, self.call, inert)
        names = interpret(self.file, self.call)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise NotPlainData("expected the names of its storages; fetch it again")
        self.fill(names)
        return found

    def storage(self, at: Storage) -> Tensor:
        """A storage, which `fill` fills."""
        if at.key not in self.storages:
            self.room -= at.size * at.dtype.itemsize
            if self.room < 0:
                raise NotPlainData("its tensors are larger than the file; fetch it again")
            self.storages[at.key] = torch.zeros(at.size, dtype=at.dtype)
        found = self.storages[at.key]
        if (found.dtype, len(found)) != (at.dtype, at.size):
            raise NotPlainData(f"storage {at.key[:40]!r} has two types or sizes; fetch it again")
        return found

    def fill(self, names: list[str]) -> None:
        """Read the numbers of the storages."""
        missing = set(self.storages)
        for name in names:
            flat = self.storages.get(name)
            if flat is None:
                raise NotPlainData(f"storage {name[:40]!r} belongs to no tensor; fetch it again")
            head = self.file.read(OLD_COUNT)
            count = int.from_bytes(head, "little")
            raw = bytearray(self.file.read(len(flat) * flat.dtype.itemsize))
            if len(head) < OLD_COUNT or count != len(flat) or len(raw) != count * flat.dtype.itemsize:
                raise NotPlainData(f"storage {name[:40]!r} is cut off or of another size; fetch it again")
            if raw:
                flat.copy_(torch.frombuffer(raw, dtype=flat.dtype))
            missing.discard(name)
        if missing:
            raise NotPlainData(f"{len(missing)} of its storages are missing; fetch it again")


def is_old(file: IO[bytes]) -> bool:
    """Whether a file begins like one; the position is the beginning afterwards."""
    found = OLD_MAGIC in file.read(OLD_BEGIN)
    file.seek(0)
    return found


DEEPEST = 4  # an enum inside a node inside a container


def value_of(found: Any) -> Any:
    """What a node of omegaconf or an enum holds; anything else is returned unchanged."""
    for _ in range(DEEPEST):
        if not isinstance(found, Record):
            break
        if found.kind.startswith("omegaconf.") and ("_val" in found or "_content" in found):
            found = found["_val"] if "_val" in found else found["_content"]
        elif len(found.args) == 1 and not found:
            found = found.args[0]
        else:
            break
    return found


def content(found: Any) -> dict[Any, Any]:
    """What a dict or a container of omegaconf holds, with its nodes and inner containers as they are."""
    held = value_of(found)
    return held if isinstance(held, dict) else {}


def settings(found: Any) -> dict[str, str | int | float | bool | None]:
    """The plain settings of a Namespace, a dict or a container of omegaconf.

    Interpolations such as ${model.size}, lists and inner containers are left out.
    """
    values = {name: value_of(value) for name, value in content(found).items() if isinstance(name, str)}
    return {
        name: value
        for name, value in values.items()
        if value is None
        or isinstance(value, int | float)
        or (isinstance(value, str) and not value.startswith("${") and value != "???")
    }
