"""Smaller graphs: weights as 8-bit integers by onnxruntime's dynamic quantisation, equal weights stored once.

Two kinds of weights are not left to onnxruntime. A table that a graph looks up is stored once, also where a
product uses it too, with a scale for each row. The weights of GRUs and plain RNNs are stored as integers and
become float32 when a program loads the graph, because onnxruntime multiplies them in float32 only.
Read next: formats/onnx.py.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from weft.export.graphs import quietly

LARGEST = 63
"""Not 127: without VNNI, x86-64 adds two products of 8 bits in 16 bits, and 2 * 255 * 127 does not fit."""


def quantise(path: Path) -> None:
    """Store the weights of a graph as 8-bit integers, and multiply in them where onnxruntime can."""
    model = onnx.load(path)
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    gathers = [node for node in model.graph.node if _looks_up(node, weights)]
    tables = {node.input[0]: weights[node.input[0]] for node in gathers}
    products = _products(model, tables)
    del model.graph.value_info[:]
    plain, small = path.with_suffix(".float"), path.with_suffix(".int8")
    onnx.save(model, plain)
    how = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
    try:
        with quietly():
            quantize_dynamic(plain, small, nodes_to_exclude=[node.name for node in gathers], **how)
        model = onnx.load(small)
        for name, table in tables.items():
            _store_table(model, name, table, [product for product, of in products.items() if of == name])
        _store_recurrent(model, weights)
        _drop_unused(model)
        onnx.save(model, path)
    finally:
        plain.unlink()
        small.unlink(missing_ok=True)


def _looks_up(node: onnx.NodeProto, weights: Mapping[str, np.ndarray]) -> bool:
    """Whether a node reads rows of a table of float32."""
    table = weights.get(node.input[0]) if node.op_type == "Gather" else None
    rows = all(each.i == 0 for each in node.attribute if each.name == "axis")
    return table is not None and rows and table.ndim == 2 and table.dtype == np.float32


def _products(model: onnx.ModelProto, tables: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The weights of products that are also tables, with the names of the tables.

    onnxruntime would transpose a weight that several nodes use, so each such product gets a copy.
    """
    found = {}
    weights = {each.name: each for each in model.graph.initializer}
    uses = Counter(value for node in model.graph.node for value in node.input)
    for node in model.graph.node:
        if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in weights:
            continue
        weight = numpy_helper.to_array(weights[node.input[1]])
        turned = weight if any(each.name == "transB" and each.i for each in node.attribute) else weight.T
        name = next((name for name, table in tables.items() if np.array_equal(table, turned)), None)
        if name is not None or uses[node.input[1]] > 1:
            copy = model.graph.initializer.add()
            copy.CopyFrom(weights[node.input[1]])
            copy.name = node.input[1] = f"{node.input[1]}_of_{node.name}"
            if name is not None:
                found[copy.name] = name
    return found


def _store_table(model: onnx.ModelProto, name: str, table: np.ndarray, products: list[str]) -> None:
    """Look rows up in a table of integers, and let products use the same integers."""
    integers, scales = eight_bits(table)
    stored = {f"{name}_integers": np.ascontiguousarray(integers.T), f"{name}_scales": scales}
    for key, value in stored.items():
        model.graph.initializer.append(numpy_helper.from_array(value, key))
    nodes = [helper.make_node("Transpose", [f"{name}_integers"], [f"{name}_rows"], perm=[1, 0])]
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[0] == name:
            at, out = node.input[1], node.output[0]
            nodes += [
                helper.make_node("Gather", [f"{name}_rows", at], [f"{out}_integers"], axis=0),
                helper.make_node("Gather", [f"{name}_scales", at], [f"{out}_scales"], axis=0),
                helper.make_node("Cast", [f"{out}_integers"], [f"{out}_cast"], to=onnx.TensorProto.FLOAT),
                helper.make_node("Mul", [f"{out}_cast", f"{out}_scales"], [out]),
            ]
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for each in model.graph.initializer:
        for product in products:
            shape = tuple(each.dims)
            if each.name == f"{product}_quantized":
                each.CopyFrom(numpy_helper.from_array(stored[f"{name}_integers"].reshape(shape), each.name))
            elif each.name == f"{product}_scale":
                each.CopyFrom(numpy_helper.from_array(scales.reshape(shape), each.name))
            elif each.name == f"{product}_zero_point":
                each.CopyFrom(numpy_helper.from_array(np.zeros(shape, np.int8), each.name))


def _store_recurrent(model: onnx.ModelProto, weights: Mapping[str, np.ndarray]) -> None:
    """Store the weights of GRUs and RNNs as integers, which become float32 when the graph is loaded."""
    nodes = []
    for node in model.graph.node:
        for place in (1, 2) if node.op_type in ("GRU", "RNN") else ():  # of the input and of the state
            name = node.input[place]
            if name not in weights:
                continue
            integers, scales = eight_bits(weights[name], 127)  # no products of integers
            stored = (f"{name}_integers", integers), (f"{name}_scales", scales)
            made = f"{node.name}_{place}"
            for key, value in stored:
                if all(each.name != key for each in model.graph.initializer):
                    model.graph.initializer.append(numpy_helper.from_array(value, key))
            nodes += [
                helper.make_node("Cast", [stored[0][0]], [f"{made}_cast"], to=onnx.TensorProto.FLOAT),
                helper.make_node("Mul", [f"{made}_cast", stored[1][0]], [made]),
            ]
            node.input[place] = made
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _drop_unused(model: onnx.ModelProto) -> None:
    """Remove weights that no node reads any more, given that no subgraph names them."""
    read = {name for node in model.graph.node for name in node.input}
    inner = {name for node in model.graph.node for each in node.attribute for name in _read_inside(each)}
    kept = [each for each in model.graph.initializer if each.name in read | inner]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def _read_inside(attribute: onnx.AttributeProto) -> set[str]:
    """The names that a subgraph reads."""
    return {name for node in attribute.g.node for name in node.input} | {
        name for node in attribute.g.node for each in node.attribute for name in _read_inside(each)
    }


def eight_bits(weight: np.ndarray, largest: int = LARGEST) -> tuple[np.ndarray, np.ndarray]:
    """Integers from -largest to largest, and the scale of each row: weight is about integers * scales."""
    scales = np.abs(weight).max(-1, keepdims=True) / largest
    scales[scales == 0] = 1
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)


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
