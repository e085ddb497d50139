"""What the calls in a file of torch.save give: tensors, records, plain data. Any other call is refused.

Read next: pickled.py, the opcodes; torchfile.py and old_torchfile.py, the files.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from weft.importing.pickled import Name, NotPlainData, Record, Storage, key, mapping

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
        """A storage as a flat tensor; always the same one, so that shared memory stays shared.

        Raises:
            NotPlainData: it is missing or has another size.
        """

    def call(self, name: Name, args: tuple[Any, ...]) -> Any:
        """Do what the pickle would call.

        Raises:
            NotPlainData: it is not one of the known calls.
        """
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
        """A view of a storage.

        Raises:
            NotPlainData: it does not fit into the storage.
        """
        flat = self.storage(at)
        whole = all(type(one) is int and one >= 0 for one in (offset, *sizes, *steps))
        if not whole or len(sizes) != len(steps):
            raise NotPlainData("a tensor has impossible sizes; fetch the file again")
        last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if 0 not in sizes and (last >= len(flat) or math.prod(sizes) > len(flat)):
            raise NotPlainData(f"a tensor of {list(sizes)} is larger than its storage of {len(flat)} numbers")
        return flat.as_strided(sizes, steps, offset)
