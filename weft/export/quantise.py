"""Weights as 8-bit integers, by onnxruntime's dynamic quantisation.

Where an embedding and a product share a weight, onnxruntime would transpose both, so the product gets a copy.
Read next: formats/onnx.py.
"""

from collections import Counter
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

from weft.export.graphs import quietly


def quantise(path: Path) -> None:
    """Store the weights of a graph as 8-bit integers, and multiply in them."""
    model = onnx.load(path)
    _untie(model)
    del model.graph.value_info[:]
    plain, small = path.with_suffix(".float"), path.with_suffix(".int8")
    onnx.save(model, plain)
    try:
        with quietly():
            quantize_dynamic(plain, small, weight_type=QuantType.QInt8, per_channel=True)
        small.replace(path)
    finally:
        plain.unlink()
        small.unlink(missing_ok=True)


def _untie(model: onnx.ModelProto) -> None:
    uses = Counter(value for node in model.graph.node for value in node.input)
    tables = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Gemm" and uses[node.input[1]] > 1 and node.input[1] in tables:
            copy = model.graph.initializer.add()
            copy.CopyFrom(tables[node.input[1]])
            copy.name = f"{node.input[1]}_of_{node.name}"
            node.input[1] = copy.name
