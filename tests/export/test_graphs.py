"""Law 12: a part in an exported graph equals the part, for other numbers of rows and steps, with padding.

The program of the page (export/page) computes the same as onnxruntime.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

from onnx import TensorProto, helper, save

from tests.export import pages
from tests.laws.members import CELLS, DECODERS, ENCODERS, READ, SIZE, Make
from weft.errors import ConfigError
from weft.export.graphs import OPSET, TOLERANCE, largest_difference, write_graph
from weft.export.programs.common import OnnxGraph
from weft.models import Generator
from weft.nn.cells.cell import Cell
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.tasks.export import Graph
from weft.tasks.seq2seq.graphs import EXAMPLES, graphs, tokens
from weft.tree import leaves

REFUSED = ("orthogonal", "unitary", "size=13, length=1)")
"""A matrix inverse, complex numbers, and a state without numbers."""

QUICK = ("lstm()",)
"""An export takes seconds, so all others run with the slow tests."""
NEAR = 2e-5
VOCABULARY = 17


class Encoded(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        return tuple(leaves(tuple(self.encoder(x, mask))))


def written(graph: Graph, tmp_path: Path, part: object = "") -> None:
    if any(name in str(part) for name in REFUSED):
        with pytest.raises(ConfigError, match="weft serve"):
            write_graph(graph, tmp_path / f"{graph.name}.onnx")
        return
    path = tmp_path / f"{graph.name}.onnx"
    assert write_graph(graph, path) < NEAR
    if pages.NODE is None:
        return
    session = OnnxGraph(path).session
    known = {each.name for each in session.get_inputs()}
    for example, found in zip(graph.examples, pages.outputs(path, graph.examples, tmp_path), strict=True):
        given = {name: value.numpy() for name, value in example.items() if name in known}
        for ours, theirs in zip(session.run(None, given), found, strict=True):
            assert ours.shape == theirs.shape
            assert largest_difference(torch.as_tensor(ours), theirs, None) < NEAR


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(f"the {'very ' * 99}first line\nand the second")


def test_large_numbers_may_differ_by_their_rounding_and_small_ones_by_no_more() -> None:
    ours = torch.tensor([[5000.0, 0.5, float("-inf")]])
    rounded, wrong = ours.clone(), ours.clone()
    rounded[0, 0] += 0.002
    wrong[0, 0] += 20
    assert largest_difference(ours, rounded.numpy(), None) < TOLERANCE
    assert largest_difference(ours, wrong.numpy(), None) > TOLERANCE
    assert largest_difference(ours[:, 1:], ours[:, 1:].numpy() + 0.01, None) > TOLERANCE


@pytest.mark.slow
def test_the_first_line_of_a_failure_is_whole(tmp_path: Path) -> None:
    examples = {"x": torch.zeros(2, 3)}, {"x": torch.zeros(3, 3)}
    with pytest.raises(ConfigError, match=r"this model's top \(the (very ){99}first line\); serve") as raised:
        write_graph(Graph("top", Failing(), examples, ["y"]), tmp_path / "top.onnx")
    assert "second" not in str(raised.value)


def source(rows: int, length: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    mask = torch.arange(length) < torch.arange(length, length - rows, -1)[:, None]
    return {"x": torch.randn(rows, length, READ, generator=draw), "mask": mask}


def check_encoder(encoder: Encoder, tmp_path: Path, part: object) -> None:
    torch.manual_seed(1)
    module = Encoded(encoder.float().eval())
    examples = source(3, 7), source(2, 10)
    count = len(module(**examples[0]))
    written(Graph("encode", module, examples, [f"out_{n}" for n in range(count)]), tmp_path, part)


def check_decoder(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    encoder = RecurrentEncoder(SIZE, sizes=(SIZE,))
    decoder = make(SIZE, encoder)
    model = Generator(
        Tokens(VOCABULARY, SIZE), decoder, Categorical(decoder.size, VOCABULARY), encoder=encoder
    )
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    inputs = tokens(*EXAMPLES[0], VOCABULARY), tokens(*EXAMPLES[1], VOCABULARY)
    for graph in graphs(model.float().eval(), inputs)[0]:
        written(graph, tmp_path, make if graph.name == "step" else "")


def members(parts: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(make, id=name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name, make in parts.items()
    ]


@pytest.mark.parametrize("make", members(CELLS))
def test_cells(make: Make, tmp_path: Path) -> None:
    def cell(in_size: int, size: int) -> Cell:
        made: Cell = make(in_size, size)
        return made

    check_encoder(RecurrentEncoder(READ, sizes=(5, SIZE), cell=cell, bidirectional=True), tmp_path, make)


# test_cells has the cells of recurrent encoders
@pytest.mark.parametrize("make", members({k: v for k, v in ENCODERS.items() if "recurrent/" not in k}))
def test_encoders(make: Make, tmp_path: Path) -> None:
    check_encoder(make(READ), tmp_path, make)


@pytest.mark.parametrize("make", members({k: v for k, v in DECODERS.items() if "pointer" not in k}))
def test_decoders(make: Make, tmp_path: Path) -> None:
    check_decoder(make, tmp_path)


OPERATORS: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "blocks": ("Einsum", [(2, 3, 5, 7), (1, 5, 11, 7)], {"equation": "...hi,ghoi->...gho"}),
    "rows": ("Einsum", [(2, 3, 7), (1, 3, 7)], {"equation": "...i,...i->..."}),
    "pairs": ("Einsum", [(3, 5), (7, 5)], {"equation": "ab, cb -> ca"}),
    "windows": ("Conv", [(2, 3, 11), (5, 3, 4)], {"pads": [1, 2], "dilations": [2]}),
    "rows of one channel": ("InstanceNormalization", [(2, 1, 13), (1,), (1,)], {}),
    "pictures": ("InstanceNormalization", [(2, 3, 5, 7), (3,), (3,)], {"epsilon": 0.01}),
    "clips": ("InstanceNormalization", [(2, 3, 2, 5, 7), (3,), (3,)], {}),
}


@pages.node
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, tmp_path: Path) -> None:
    kind, shapes, settings = OPERATORS[name]
    names = [f"x{n}" for n in range(len(shapes))]
    given = [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in names]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(kind, names, ["y"], **settings)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(
        helper.make_graph([node], "one", given, [out]), opset_imports=[opset], ir_version=9
    )
    save(model, str(tmp_path / "one.onnx"))
    draw = torch.Generator().manual_seed(3)
    inputs = {name: torch.randn(shape, generator=draw) for name, shape in zip(names, shapes, strict=True)}
    (ours,) = OnnxGraph(tmp_path / "one.onnx")({name: x.numpy() for name, x in inputs.items()}).values()
    ((theirs,),) = pages.outputs(tmp_path / "one.onnx", [inputs], tmp_path)
    assert ours.shape == theirs.shape and largest_difference(torch.as_tensor(ours), theirs, None) < NEAR
