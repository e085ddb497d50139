"""Read a file of `torch.save` as plain data, without unpickling: nothing is imported, called or assigned.

A pickle is a program that builds objects by calling functions, so `torch.load` of a stranger's file can run
a stranger's code. Here its opcodes only build tensors, dicts, lists, tuples, sets, texts and numbers. The few
calls that such a file needs are known by name and done here. An object of a library that translation toolkits
keep in their checkpoints becomes a `Record`, its attributes without its class; any other call is refused.
Read next: contents.py, the calls; pickled.py, the opcodes; old_torchfile.py, files of before PyTorch 1.6;
records.py, settings from records; checkpoint.py, which uses this.
"""

import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.errors import CheckpointError
from weft.importing import old_torchfile
from weft.importing.contents import Contents, inert
from weft.importing.pickled import NotPlainData, Storage, interpret

LARGEST_PICKLE = 256 << 20  # bytes; only tensors may be larger


def read_torch_file(path: Path) -> Any:
    """The contents of a file that `torch.save` wrote, of PyTorch 0.4 or later.

    Args:
        path: the file.

    Returns:
        Tensors, and dict, list, tuple, set, str, bytes, int, float, bool, None. An argparse.Namespace becomes
        a dict, an object of the packages RECORDED a `Record`, one of their classes a `Name`. Tensors that
        share memory still do.

    Raises:
        CheckpointError: the file cannot be read, is damaged, or contains anything else.
    """
    try:
        with open(path, "rb") as file:
            if old_torchfile.is_old(file):
                return old_torchfile.OldFile(file).read()
            with zipfile.ZipFile(file) as archive:
                return _Archive(archive).read()
    except NotPlainData as error:
        raise CheckpointError(f"{path}: {error}") from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise CheckpointError(
            f"{path}: expected a file of torch.save ({error}); load it where it was made and save it again "
            "with safetensors"
        ) from error


def program(path: Path, most: int = 1 << 20) -> bytes:
    """The beginning of the pickle in a file of `torch.save`, uninterpreted; empty for other files.

    The names of a checkpoint's parts are in it, so that its toolkit can be recognised.

    Args:
        path: the file.
        most: bytes.
    """
    try:
        with open(path, "rb") as start:
            if old_torchfile.is_old(start):
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
        program = self.content("data.pkl", LARGEST_PICKLE)
        try:
            return interpret(program, self.call, inert)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise NotPlainData(
                f"is damaged ({type(error).__name__}: {str(error)[:80]}); fetch it again"
            ) from error

    def content(self, name: str, most: int) -> bytes:
        """A file of the archive, which `torch.save` never compresses.

        Raises:
            NotPlainData: it is compressed, or larger than `most` bytes.
        """
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
