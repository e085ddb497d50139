"""Store weights that several graphs use only once, as ONNX's external data."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import onnx

SMALLEST = 1024  # bytes; smaller tensors stay in their graph
ALIGNED = 4096  # so that a program can map the file into memory


def stored(paths: Sequence[Path]) -> int:
    """Bytes of graphs whose equal tensors are stored once."""
    total, seen = 0, set()
    for path in paths:
        total += path.stat().st_size
        for tensor in onnx.load(path).graph.initializer:
            key = hashlib.sha256(tensor.raw_data).digest()
            total -= len(tensor.raw_data) * (key in seen)
            seen.add(key)
    return total


def share(paths: Sequence[Path], weights: Path) -> None:
    """Move the large tensors of graphs to one file."""
    places: dict[bytes, int] = {}
    graphs = [onnx.load(path) for path in paths]
    with open(weights, "wb") as file:
        for graph in graphs:
            for tensor in graph.graph.initializer:
                data = tensor.raw_data
                if len(data) < SMALLEST:
                    continue
                key = hashlib.sha256(data).digest()
                if key not in places:
                    file.write(b"\0" * (-file.tell() % ALIGNED))
                    places[key] = file.tell()
                    file.write(data)
                tensor.ClearField("raw_data")
                tensor.data_location = onnx.TensorProto.EXTERNAL
                about = {"location": weights.name, "offset": places[key], "length": len(data)}
                for name, value in about.items():
                    tensor.external_data.add(key=name, value=str(value))
    for graph, path in zip(graphs, paths, strict=True):
        path.write_bytes(graph.SerializeToString())
