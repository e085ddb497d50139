"""Trace graphs to ONNX, and check them with onnxruntime at other sizes than those that they were traced with.

ONNX stacks an LSTM's gates i, o, f, c and a GRU's z, r, h; ours are i, f, c, o and r, z, h.
Read next: formats/onnx.py, which calls this.
"""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import onnxscript
import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError, ExportError
from weft.export.programs.common import OnnxGraph
from weft.nn.kernels import choice
from weft.nn.kernels.cells.layer import recurrent_layer
from weft.tasks.export import Graph

TOLERANCE = 1e-3
"""Largest allowed difference of an output from Weft's; usual ones are below 1e-5."""

STRIDES = (1, 2, 4, 8)  # input positions per state of an encoder


def write_graph(graph: Graph, path: Path) -> float:
    """Trace a graph with its first example, write it, and compare it with Weft on its second."""
    first, second = graph.examples
    names = list(first)
    dynamic = tuple(_varying(first[name], second[name]) for name in names)
    with quietly(), torch.no_grad(), choice.use(cells="torch", linear="torch", fused="torch"):
        try:
            program = torch.onnx.export(
                _Flat(graph.module).eval(),
                tuple(first.values()),
                dynamo=True,
                opset_version=OPSET,
                input_names=names,
                output_names=list(graph.outputs),
                dynamic_shapes=(tuple(dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in dynamic),),
                custom_translation_table=translations(),
                verbose=False,
            )
            assert program is not None
            model = _simplified(program.model_proto, path)
        except Exception as error:
            raise ConfigError(
                f"--to onnx: {_reason(error, graph.name)}; serve the run with weft serve"
            ) from error
    _name_axes(model, graph, dynamic)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return compare(graph, path)


def _reason(error: Exception, name: str) -> str:
    """What ONNX lacks, or the first line of torch's own error; the next one too after a colon."""
    operation = re.search(r"No ONNX function found for <OpOverload\(op='([^']+)'", str(error))
    if operation:
        return f"ONNX has no operation for {operation[1]}, which this model's {name} needs"
    first: BaseException = error
    while first.__cause__ is not None and str(first.__cause__).strip():
        first = first.__cause__
    lines = [line.strip() for line in str(first).splitlines() if line.strip()]
    why = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return f"torch cannot export this model's {name} ({why or type(first).__name__})"


class _Flat(nn.Module):
    """A module that takes any number of inputs, so that all are declared in the same way."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Tensor) -> Any:
        return self.module(*inputs)


def compare(graph: Graph, path: Path) -> float:
    """The largest difference between a graph's file and Weft, over both examples."""
    exported, worst = OnnxGraph(path), 0.0
    for example in graph.examples:
        with torch.no_grad():
            wanted = graph.module(*example.values())
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = exported({name: value.numpy() for name, value in example.items()})
        mask = example.get("mask")
        for name, ours in zip(graph.outputs, wanted, strict=True):
            theirs = found[name]
            if tuple(ours.shape) != theirs.shape:
                raise ExportError(
                    f"{path.name}: {name}: expected {list(ours.shape)}, got {list(theirs.shape)}"
                )
            worst = max(worst, largest_difference(ours, theirs, mask))
    if not worst <= TOLERANCE:
        raise ExportError(f"{path.name}: differs from Weft by {worst:.2g}, more than {TOLERANCE:g}")
    return worst


def largest_difference(ours: Tensor, theirs: np.ndarray, mask: Tensor | None) -> float:
    """The largest difference at real positions; what a model computes at padding is never used.

    Numbers beyond 1 are compared as shares of the largest: some encoders have states of thousands.
    """
    a, b = ours.numpy().astype(np.float64), theirs.astype(np.float64)
    scale = max(1.0, float(np.abs(a, where=np.isfinite(a), out=np.zeros_like(a)).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a - b))  # -inf equals -inf
    for axis in range(1, gap.ndim):
        if mask is None:
            break
        stride = next((k for k in STRIDES if gap.shape[axis] == -(-mask.shape[1] // k)), 0)
        if stride:
            real = masks.from_lengths(-(-masks.lengths(mask) // stride), gap.shape[axis]).numpy()
            gap = gap * np.expand_dims(real, tuple(n for n in range(1, gap.ndim) if n != axis))
    return float(gap.max(initial=0.0)) / scale


def _varying(first: Tensor, second: Tensor) -> list[int]:
    """The axes whose size differs."""
    pairs = zip(first.shape, second.shape, strict=True)
    return [axis for axis, (a, b) in enumerate(pairs) if a != b]


def _simplified(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """Fold constants, such as weights in another order, by onnxruntime's basic optimisation."""
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    settings.log_severity_level = 3
    folded = path.with_suffix(".folded")
    settings.optimized_model_filepath = str(folded)
    raw = path.with_suffix(".raw")
    onnx.save(model, raw)
    try:
        onnxruntime.InferenceSession(str(raw), settings, providers=["CPUExecutionProvider"])
        return onnx.load(folded)
    finally:
        raw.unlink()
        folded.unlink(missing_ok=True)


def _name_axes(model: onnx.ModelProto, graph: Graph, dynamic: Sequence[Sequence[int]]) -> None:
    """Declare which axes vary; the exporter writes the example's sizes into some outputs."""
    with torch.no_grad():
        both = [graph.module(*example.values()) for example in graph.examples]
    outputs = [each if isinstance(each, tuple) else (each,) for each in both]
    axes = dict(zip(graph.examples[0], dynamic, strict=True))
    for name, first, second in zip(graph.outputs, *outputs, strict=True):
        axes[name] = _varying(first, second)
    names = list(graph.examples[0])
    rows = graph.examples[0][names[0]].shape[0], graph.examples[1][names[0]].shape[0]
    sizes = {name: (graph.examples[0][name].shape[0], graph.examples[1][name].shape[0]) for name in names}
    for value in [*model.graph.input, *model.graph.output]:
        for axis in axes[value.name]:
            shared = axis == 0 and sizes.get(value.name, rows) == rows
            value.type.tensor_type.shape.dim[axis].dim_param = "rows" if shared else f"{value.name}_{axis}"
    del model.graph.value_info[:]


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without the exporter's progress and warnings."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


OPSET = 18

GATES = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "peephole": ("LSTM", (0, 3, 1, 2)),
    "coupled": ("LSTM", (None, 2, 0, 1)),  # i is 1 - f, sigmoid(-z)
    "gru": ("GRU", (1, 0, 2)),
    "gru_before": ("GRU", (1, 0, 2)),
    "elman": ("RNN", (0,)),
    "relu": ("RNN", (0,)),
}
"""The operator of each cell, and the place of each of its gates among ours; None is minus our forget gate."""


def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """The table for torch.onnx.export."""
    return {torch.ops.weft.recurrent_layer.default: _layer}


assert recurrent_layer is not None  # registers the operation


def _layer(
    cell: str,
    x: Any,
    h: Any,
    c: Any,
    weight_x: Any,
    weight_h: Any,
    bias: Any,
    inner: Any,
    peep: Any,
    lengths: Any,
) -> Any:
    op: Any = onnxscript.opset18
    kind, order = GATES[cell]
    size = int(h.shape[1])
    ours = int(weight_h.shape[0]) // size

    def gate(stacked: Any, place: int | None) -> Any:
        parts = op.Split(stacked, axis=0, num_outputs=ours) if ours > 1 else (stacked,)
        return op.Neg(parts[0]) if place is None else parts[place]

    def stack(stacked: Any) -> Any:
        return op.Concat(*(gate(stacked, place) for place in order), axis=0)

    def first(value: Any, axis: int = 0) -> Any:
        return op.Unsqueeze(value, op.Constant(value_ints=[axis]))

    w, r = first(stack(weight_x)), first(stack(weight_h))
    biases = first(op.Concat(stack(bias), stack(inner), axis=0))
    steps = op.Transpose(x, perm=[1, 0, 2])
    count = op.Cast(lengths, to=6)  # int32
    start = first(h)
    if kind == "LSTM":
        extra = []
        if cell == "peephole":
            p_i, p_f, p_o = op.Split(peep, axis=0, num_outputs=3)
            extra = [op.Concat(p_i, p_o, p_f, axis=1)]
        y, last, cell_state = op.LSTM(steps, w, r, biases, count, start, first(c), *extra, hidden_size=size)
        last_c = op.Squeeze(cell_state, op.Constant(value_ints=[0]))
    elif kind == "GRU":
        after = 0 if cell == "gru_before" else 1
        y, last = op.GRU(steps, w, r, biases, count, start, hidden_size=size, linear_before_reset=after)
        last_c = op.Identity(c)
    else:
        activation = {"elman": "Tanh", "relu": "Relu"}[cell]
        y, last = op.RNN(steps, w, r, biases, count, start, hidden_size=size, activations=[activation])
        last_c = op.Identity(c)
    rows = op.Transpose(op.Squeeze(y, op.Constant(value_ints=[1])), perm=[1, 0, 2])
    return rows, op.Squeeze(last, op.Constant(value_ints=[0])), last_c
