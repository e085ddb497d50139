"""Pickle's stack machine, reduced to data: opcodes that build plain values, and calls handed to the caller.

Nothing is imported and no attribute is set; objects of some packages become inert records. Read next:
torchfile.py, which decides about the calls; Python's pickletools, which splits a pickle into opcodes.
"""

import pickletools
from collections.abc import Callable
from typing import IO, Any, NamedTuple

import torch

MOST_STEPS = 50_000_000

STORAGES: dict[str, torch.dtype] = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
DTYPES = {name: one for name, one in vars(torch).items() if isinstance(one, torch.dtype)}

MARK = object()


class NotPlainData(Exception):
    """The file contains something that is not plain data; the message says what."""


class Name(NamedTuple):
    """What a pickle would import. It is never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Record(dict[Any, Any]):
    """What is known of an object that is never made: the name of its class, and its attributes as items."""

    def __init__(self, kind: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__()
        self.kind = kind
        self.args = args

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class Storage(NamedTuple):
    """Reference to the memory of tensors."""

    dtype: torch.dtype
    key: str
    size: int  # numbers


Call = Callable[[Name, tuple[Any, ...]], Any]


def interpret(data: bytes | IO[bytes], call: Call, inert: Callable[[Name], bool] = lambda name: False) -> Any:
    """The value that a pickle describes."""
    machine = _Machine(call)
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count > MOST_STEPS:
            break
        if opcode.name == "STOP":
            (found,) = machine.stack
            return _only_data(found, inert)
        step = _STEPS.get(opcode.name)
        if step is None:
            raise NotPlainData(f"expected only tensors and plain data, got the opcode {opcode.name}")
        step(machine, opcode.name, argument)
    raise NotPlainData("expected an end of the pickle, got none; fetch the file again")


class _Machine:
    """The stack, and values that later opcodes refer to."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def push(self, name: str, argument: Any) -> None:
        """A number, a text or bytes."""
        self.stack.append(argument)

    def constant(self, name: str, argument: Any) -> None:
        """None, True, False, or an empty container."""
        self.stack.append(_CONSTANTS[name]())

    def gather(self, name: str, argument: Any) -> None:
        """A tuple, list or dict of the values since the last mark."""
        self.stack.append(_GATHERED[name](self.since_mark()))

    def short_tuple(self, name: str, argument: Any) -> None:
        """A tuple of the last one to three values."""
        count = int(name[-1])
        items = self.stack[-count:]
        del self.stack[-count:]
        self.stack.append(tuple(items))

    def extend(self, name: str, argument: Any) -> None:
        """Add values to the list, set or dict below them."""
        single = {"APPEND": 1, "SETITEM": 2}.get(name)
        if single is None:
            items = self.since_mark()
        else:
            items = self.stack[-single:]
            del self.stack[-single:]
        holder = self.stack[-1]
        if name in ("APPEND", "APPENDS") and isinstance(holder, list):
            holder.extend(items)
        elif name == "ADDITEMS" and isinstance(holder, set):
            holder.update(map(key, items))
        elif name in ("SETITEM", "SETITEMS") and isinstance(holder, dict):
            holder.update(mapping(items))
        else:
            raise NotPlainData(
                f"expected a list, set or dict to add to, got {type(holder).__name__}; fetch the file again"
            )

    def remember(self, name: str, argument: Any) -> None:
        """Give the last value a number."""
        self.memo[len(self.memo) if name == "MEMOIZE" else int(argument)] = self.stack[-1]

    def recall(self, name: str, argument: Any) -> None:
        """The value with this number."""
        self.stack.append(self.memo[int(argument)])

    def imported(self, name: str, argument: Any) -> None:
        if name == "GLOBAL":
            module, attribute = argument.split(" ", 1)
        else:
            attribute, module = self.stack.pop(), self.stack.pop()
        if not (isinstance(module, str) and isinstance(attribute, str)):
            raise NotPlainData("expected the name of an import, got something else; fetch the file again")
        data_type = DTYPES.get(attribute) if module == "torch" else None
        self.stack.append(Name(module, attribute) if data_type is None else data_type)

    def storage(self, name: str, argument: Any) -> None:
        """A reference to the memory of tensors."""
        match self.stack.pop():
            case (  # before PyTorch 1.6 with a view, which it no longer wrote
                ("storage", Name("torch", kind), str() as key, str(), int() as size)
                | ("storage", Name("torch", kind), str() as key, str(), int() as size, None)
            ) if kind in STORAGES and size >= 0:
                self.stack.append(Storage(STORAGES[kind], key, size))
            case other:
                raise NotPlainData(f"expected a storage of numbers, got a {type(other).__name__}")

    def reduce(self, name: str, argument: Any) -> None:
        args, called = self.stack.pop(), self.stack.pop()
        if not isinstance(called, Name) or not isinstance(args, tuple):
            raise NotPlainData("expected the name of a call, got something else; fetch the file again")
        self.stack.append(self.call(called, args))

    def build(self, name: str, argument: Any) -> None:
        """Attributes: items of a record or a Namespace, dropped for a dict that has items (_metadata)."""
        state, built = self.stack.pop(), self.stack[-1]
        if isinstance(built, Record):
            built.update(attributes(state))
            return
        if not (isinstance(built, dict) and isinstance(state, dict)):
            raise NotPlainData(
                f"expected only tensors and plain data, got attributes of {type(built).__name__}"
            )
        if not built and "_metadata" not in state:
            built.update(state)

    def pop(self, name: str, argument: Any) -> None:
        """Drop the last value."""
        self.stack.pop()

    def since_mark(self) -> list[Any]:
        """Take the values since the last mark off the stack."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise IndexError("no mark")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: MARK,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": set,
}
_GATHERED: dict[str, Callable[[list[Any]], Any]] = {
    "TUPLE": tuple,
    "LIST": list,
    "DICT": lambda items: mapping(items),
}
_STEPS: dict[str, Callable[[_Machine, str, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, name, argument: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG"), _Machine.push),
    **dict.fromkeys(("BINFLOAT", "FLOAT", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), _Machine.push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"), _Machine.push),
    **dict.fromkeys(_CONSTANTS, _Machine.constant),
    **dict.fromkeys(_GATHERED, _Machine.gather),
    **dict.fromkeys(("TUPLE1", "TUPLE2", "TUPLE3"), _Machine.short_tuple),
    **dict.fromkeys(("APPEND", "APPENDS", "ADDITEMS", "SETITEM", "SETITEMS"), _Machine.extend),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), _Machine.recall),
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL"), _Machine.imported),
    "BINPERSID": _Machine.storage,
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _Machine.reduce),
    "BUILD": _Machine.build,
    "POP": _Machine.pop,
}


def mapping(items: list[Any]) -> dict[Any, Any]:
    """A dict from keys and values in turns."""
    return {key(one): value for one, value in zip(items[::2], items[1::2], strict=True)}


def attributes(state: Any) -> dict[Any, Any]:
    """The attributes that BUILD would set: a dict, or a pair of dicts for a class with slots."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    if all(isinstance(one, dict | None) for one in parts):
        return {name: value for one in parts if one for name, value in one.items()}
    return {"state": state}  # of a class with its own __setstate__


def key(value: Any) -> Any:
    """A key of a dict or an element of a set. Nested tuples are refused: hashing them can take forever."""
    simple = str | bytes | int | float | None
    if all(isinstance(one, simple) for one in (value if isinstance(value, tuple) else [value])):
        return value
    raise NotPlainData(f"expected text or a number as the key of a dict, got {type(value).__name__}")


def _only_data(found: Any, inert: Callable[[Name], bool]) -> Any:
    """Check that a value holds no storage or mark, and no name but inert ones."""
    seen, rest = set[int](), [found]
    while rest:
        value = rest.pop()
        if isinstance(value, Storage) or value is MARK or (isinstance(value, Name) and not inert(value)):
            raise NotPlainData(f"expected only tensors and plain data, got {value}")
        if isinstance(value, dict | list | tuple | set) and id(value) not in seen:
            seen.add(id(value))
            rest += [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
            rest += value.args if isinstance(value, Record) else ()
    return found
