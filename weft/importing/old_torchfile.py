"""Read a file that `torch.save` wrote before PyTorch 1.6, as plain data, without unpickling.

It is a sequence of pickles: a magic number, the version of the format, the machine, the contents, the names
of the storages; then each storage behind the count of its numbers. Read next: torchfile.py, today's format.
"""

import os
from typing import IO, Any

import torch
from torch import Tensor

from weft.importing.contents import Contents, inert
from weft.importing.pickled import NotPlainData, Storage, interpret

MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the opcodes of 0x1950a86a20f9469cfc6c
BEGIN = 32  # bytes within which it is
VERSION = 1001
COUNT = 8  # bytes of the count before a storage


class OldFile(Contents):
    """The file, and the storages that its contents refer to.

    Args:
        file: at its beginning.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.room = os.fstat(file.fileno()).st_size  # bytes that storages can have
        self.storages: dict[str, Tensor] = {}

    def read(self) -> Any:
        """The contents.

        Raises:
            NotPlainData: the file is damaged, or contains anything but plain data.
        """
        try:
            interpret(self.file, self.call)  # the magic number
            version, machine = interpret(self.file, self.call), interpret(self.file, self.call)
            if version != VERSION or machine.get("little_endian") is not True:
                raise NotPlainData("expected format 1001 and little-endian numbers; save it again")
            found = interpret(self.file, self.call, inert)
            names = interpret(self.file, self.call)
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise NotPlainData("expected the names of its storages; fetch it again")
            self.fill(names)
            return found
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise NotPlainData(
                f"is damaged ({type(error).__name__}: {str(error)[:80]}); fetch it again"
            ) from error

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
        """Read the numbers of the storages.

        Raises:
            NotPlainData: one is missing, or of another size.
        """
        missing = set(self.storages)
        for name in names:
            flat = self.storages.get(name)
            if flat is None:
                raise NotPlainData(f"storage {name[:40]!r} belongs to no tensor; fetch it again")
            head = self.file.read(COUNT)
            count = int.from_bytes(head, "little")
            raw = bytearray(self.file.read(len(flat) * flat.dtype.itemsize))
            if len(head) < COUNT or count != len(flat) or len(raw) != count * flat.dtype.itemsize:
                raise NotPlainData(f"storage {name[:40]!r} is cut off or of another size; fetch it again")
            if raw:
                flat.copy_(torch.frombuffer(raw, dtype=flat.dtype))
            missing.discard(name)
        if missing:
            raise NotPlainData(f"{len(missing)} of its storages are missing; fetch it again")


def is_old(file: IO[bytes]) -> bool:
    """Whether a file begins like one; the position is the beginning afterwards."""
    found = MAGIC in file.read(BEGIN)
    file.seek(0)
    return found
