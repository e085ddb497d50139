"""The fields of a protobuf message, without its schema: numbers and raw values. Read next: sentencepiece.py.

Source: the wire format of protocol buffers (varint, 64-bit, length-delimited, 32-bit).
"""

import struct
from collections.abc import Iterator
from typing import Any

Field = tuple[int, Any]


def fields(data: bytes) -> list[Field]:
    """The fields of a protobuf message: varints as int, 32-bit fields as float, the rest as bytes."""
    return list(_walk(memoryview(data)))


def _walk(data: memoryview) -> Iterator[Field]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else _varint(data, at)
        if wire not in (1, 2, 5) or at + size > len(data):
            raise ValueError("it is cut off, or of another format")
        part = bytes(data[at : at + size])
        yield number, struct.unpack("<f", part)[0] if wire == 5 else part
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it is cut off")
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def last(fields: list[Field], number: int, default: Any) -> Any:
    """The last value of a field; the default if it is missing."""
    return next((value for one, value in reversed(fields) if one == number), default)
