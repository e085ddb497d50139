"""8-bit weights: small files whose graphs compute nearly the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

import onnx
from onnx import TensorProto, helper, numpy_helper

from weft.export import packed
from weft.export.programs.common import OnnxGraph
from weft.export.quantise import eight_bits, quantise, share, stored

V, D, H, S, B = 307, 23, 13, 5, 3


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def saved(path: Path, nodes: list[Any], weights: dict[str, np.ndarray], inputs: dict[str, Any]) -> Path:
    """A graph with one output, y."""
    values = [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs.items()]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "graph", values, [out], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, path)
    return path


def look_up(path: Path, table: np.ndarray) -> Path:
    node = helper.make_node("Gather", ["table", "x"], ["y"], name="look_up")
    return saved(path, [node], {"table": table}, {"x": TensorProto.INT64})


def tied(path: Path, table: np.ndarray, *, turned: bool) -> Path:
    """Looks rows up, and multiplies them with the same table, as the output layer of a tied model."""
    nodes = [helper.make_node("Gather", ["table", "x"], ["rows"], name="look_up")]
    weights = {"table": table}
    if turned:
        weights["columns"] = np.ascontiguousarray(table.T)
        nodes.append(helper.make_node("MatMul", ["rows", "columns"], ["y"], name="product"))
    else:
        nodes.append(helper.make_node("Gemm", ["rows", "table"], ["y"], name="product", transB=1))
    return saved(path, nodes, weights, {"x": TensorProto.INT64})


def computed(path: Path, **inputs: np.ndarray) -> np.ndarray:
    found: np.ndarray = next(iter(OnnxGraph(path)(inputs).values()))
    return found


def test_a_row_is_at_most_half_a_step_away() -> None:
    table = drawn(V, D)
    table[0] = 0
    integers, scales = eight_bits(table)
    assert integers.dtype == np.int8 and np.abs(integers).max() == 63
    assert (np.abs(integers * scales - table) <= scales / 2 + 1e-7).all()
    assert (integers[0] == 0).all()


@pytest.mark.parametrize("turned", [False, True])
def test_a_table_that_is_also_the_output_layer_is_stored_once(turned: bool, tmp_path: Path) -> None:
    table = drawn(V, D)
    table[0] = 0
    x = np.array([0, V - 1, 5, 5], dtype=np.int64)
    paths = [look_up(tmp_path / "start.onnx", table), tied(tmp_path / "step.onnx", table, turned=turned)]
    whole = [computed(path, x=x) for path in paths]
    before = stored(paths)
    for path in paths:
        quantise(path)
    # one integer per weight; a scale per row and graph, zero points, and the nodes
    assert stored(paths) < V * D + 3 * 4 * V + V + 3000 < 0.5 * before
    share(paths, tmp_path / "weights.bin")
    rows, logits = (computed(path, x=x) for path in paths)
    assert np.abs(rows - whole[0]).max() <= np.abs(table).max() / 63
    assert rows.dtype == np.float32 and (rows[0] == 0).all()
    assert np.abs(logits - whole[1]).max() < 0.03 * np.abs(whole[1]).max()


@pytest.mark.parametrize("turned", [False, True])
def test_a_small_table_may_be_the_output_layer_too(turned: bool, tmp_path: Path) -> None:
    table = drawn(H, D)
    path = tied(tmp_path / "step.onnx", table, turned=turned)
    x = np.array([0, H - 1], dtype=np.int64)
    whole = computed(path, x=x)
    quantise(path)
    assert np.abs(computed(path, x=x) - whole).max() < 0.03 * np.abs(whole).max()


def test_indices_of_any_shape_are_looked_up(tmp_path: Path) -> None:
    table = drawn(V, D)
    path = look_up(tmp_path / "x.onnx", table)
    quantise(path)
    for x in (np.int64(7), np.full((B, S), 11), np.full((1, 1, 1), V - 1)):
        found = computed(path, x=np.asarray(x, dtype=np.int64))
        assert found.shape == (*np.shape(x), D)
        np.testing.assert_allclose(found, table[x], atol=np.abs(table).max() / 63)


def test_a_gru_is_stored_in_a_quarter_of_its_size(tmp_path: Path) -> None:
    weights = {"w": drawn(1, 3 * H, D), "r": drawn(1, 3 * H, H) / 4}
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], name="gru", hidden_size=H, linear_before_reset=1)
    path = saved(tmp_path / "gru.onnx", [node], weights, {"x": TensorProto.FLOAT})
    x = drawn(S, B, D)
    whole, floats = computed(path, x=x), sum(each.nbytes for each in weights.values())
    quantise(path)
    assert path.stat().st_size < floats / 4 + 2 * 3 * H * 4 + 1500
    assert np.abs(computed(path, x=x) - whole).max() < 0.05


def test_a_weight_that_a_loop_reads_is_kept(tmp_path: Path) -> None:
    table, weight = drawn(V, D), drawn(D, D) / D
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["h", "weight"], ["next"], name="inner")],
        "body",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["rows"], name="look_up"),
        helper.make_node("Loop", ["times", "", "rows"], ["y"], name="loop", body=inner),
    ]
    weights = {"table": table, "weight": weight, "times": np.array(3, dtype=np.int64)}
    path = saved(tmp_path / "loop.onnx", nodes, weights, {"x": TensorProto.INT64})
    x = np.array([1, 2], dtype=np.int64)
    whole = computed(path, x=x)
    quantise(path)
    assert np.abs(computed(path, x=x) - whole).max() < 0.05 * np.abs(whole).max()


def test_a_page_s_scale_is_at_most_one_in_thirty_thousand_too_large() -> None:
    weights = drawn(packed.BLOCK, 300) * 10.0 ** np.random.default_rng(7).integers(-6, 3, (packed.BLOCK, 1))
    weights = weights.astype(np.float32).ravel()
    integers, scales = packed.eight_bits(weights)
    exact = np.abs(weights.reshape(-1, packed.BLOCK)).max(1) / packed.LARGEST
    assert ((scales >= exact * (1 - 1e-6)) & (scales <= exact * (1 + 1 / 30_000))).all()
    again = integers.reshape(-1, packed.BLOCK) * scales[:, None]
    assert (np.abs(again.ravel() - weights).reshape(-1, packed.BLOCK).max(1) <= 0.5001 * scales).all()
