"""A model's graphs, settings and files as one piece of bytes, which page/graph.js reads and describes.

Read next: formats/web.py, which calls it.
"""

import gzip
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

BLOCK = 32  # weights that share a scale where they are stored as 8-bit integers
SMALLEST = 256  # number of weights below which a tensor stays in float32
LARGEST = 127
LOWER = np.uint32(0xFF)
WHOLE = np.iinfo(np.int32)
TYPES = {"float32": "float32", "float16": "float32", "float64": "float64", "bool": "bool", "uint8": "uint8"}
"""Types of the page; all others are whole numbers of 32 bits."""


def pack(
    graphs: Mapping[str, Path], settings: Mapping[str, Any], files: Mapping[str, bytes], *, int8: bool
) -> bytes:
    """The bytes, compressed."""
    packer = _Packer(int8=int8)
    made = {name: packer.graph(onnx.load(path).graph) for name, path in graphs.items()}
    placed = {name: [packer.data(content), len(content)] for name, content in files.items()}
    parts = {"settings": dict(settings), "files": placed, "tensors": packer.tensors, "graphs": made}
    header = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    return gzip.compress(
        b"weft" + struct.pack("<I", len(header)) + header + bytes(packer.content), 9, mtime=0
    )


def rounded(path: Path) -> None:
    """Round the weights of a graph's file as `pack` does with `int8`, to see what that costs."""
    model = onnx.load(path)
    for one in model.graph.initializer:
        weights = numpy_helper.to_array(one)
        if _is_rounded(weights):
            integers, scales = eight_bits(weights)
            again = integers * np.repeat(scales, BLOCK)[: integers.size]
            one.CopyFrom(numpy_helper.from_array(again.reshape(weights.shape).astype(np.float32), one.name))
    onnx.save(model, path)


def operators_of(path: Path) -> set[str]:
    """Names of the operators in a graph's file, also those in the bodies of its loops and branches."""

    def used(graph: onnx.GraphProto) -> set[str]:
        inner = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
        return {node.op_type for node in graph.node}.union(*map(used, inner))

    return used(onnx.load(path).graph)


def _is_rounded(weights: np.ndarray) -> bool:
    return weights.dtype == np.float32 and weights.size >= SMALLEST and bool(np.isfinite(weights).all())


class _Packer:
    def __init__(self, *, int8: bool) -> None:
        self.int8 = int8
        self.tensors: list[dict[str, Any]] = []
        self.content = bytearray()
        self.places: dict[bytes, int] = {}

    def graph(self, graph: onnx.GraphProto) -> dict[str, Any]:
        return {
            "inputs": [one.name for one in graph.input],
            "outputs": [one.name for one in graph.output],
            "constants": {one.name: self.tensor(numpy_helper.to_array(one)) for one in graph.initializer},
            "nodes": [
                [
                    node.op_type,
                    list(node.input),
                    list(node.output),
                    {one.name: self.setting(one) for one in node.attribute},
                ]
                for node in graph.node
            ],
        }

    def setting(self, given: onnx.AttributeProto) -> Any:
        value = onnx.helper.get_attribute_value(given)
        if isinstance(value, onnx.GraphProto):
            return self.graph(value)
        if isinstance(value, onnx.TensorProto):
            return {"tensor": self.tensor(numpy_helper.to_array(value))}
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, int | float):
            return value
        return [one.decode() if isinstance(one, bytes) else one for one in value]

    def tensor(self, given: np.ndarray) -> int:
        """The place of a tensor in the list; equal ones are stored once."""
        kind = TYPES.get(given.dtype.name, "int32")
        array = np.ascontiguousarray(given.clip(WHOLE.min, WHOLE.max) if kind == "int32" else given)
        array = array.astype(np.dtype(kind).newbyteorder("<"))
        key = hashlib.sha256(f"{kind} {given.shape}".encode() + array.tobytes()).digest()
        if key not in self.places:
            self.places[key] = len(self.tensors)
            about: dict[str, Any] = {"type": kind, "dims": list(given.shape)}
            if self.int8 and _is_rounded(given):
                integers, scales = eight_bits(array)
                about |= {"at": self.data(integers.tobytes()), "scales": self.data(scales.tobytes())}
            else:
                about["at"] = self.data(array.tobytes())
            self.tensors.append(about)
        return self.places[key]

    def data(self, content: bytes) -> int:
        at = len(self.content)
        self.content += content
        return at


def eight_bits(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers from -127 to 127, and the scale of each block of BLOCK weights in order.

    A scale is rounded up to the upper 24 of its 32 bits, so that its last byte compresses to nothing:
    2 % of a translator, for weights that differ by at most 1 in 30,000.
    """
    flat = weights.ravel()
    blocks = np.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(1) / LARGEST).astype(np.float32)
    scales[scales == 0] = 1
    scales = (scales.view(np.uint32) + LOWER & ~LOWER).view(np.float32)
    return np.rint(blocks / scales[:, None]).astype(np.int8).ravel()[: len(flat)], scales
