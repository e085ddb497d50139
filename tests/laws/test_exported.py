"""Laws of a program that torch.export makes: it computes what the part computes, for other sizes too."""

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import CELLS, ENCODERS, READ, Make, cases, close, ready, source
from weft import tree
from weft.nn.encoders.encoder import Encoder
from weft.testing.cells import cell_of

AXES = {0: torch.export.Dim("rows"), 1: torch.export.Dim("steps")}
OPERATORS = ("lstm()", "gru(after)", "gru(before)", "elman(tanh)", "coupled(True)", "peephole(diagonal)")


class Outputs(nn.Module):
    """What a cell or an encoder gives, as tensors."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        if isinstance(self.part, Encoder):
            memory = self.part(x, mask)
            return memory.states, memory.summary
        y, state = self.part(x, self.part.start(x), mask)
        return y, *tree.leaves(state)


def same(part: nn.Module) -> None:
    model = Outputs(part.eval())
    x, mask = source(torch.float32)
    program = torch.export.export(model, (x, mask), dynamic_shapes={"x": AXES, "mask": AXES}).module()
    for some in ((x, mask), (x[:2, :4], mask[:2, :4])):
        close(program(*some), model(*some), 1e-5)


pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning"
)  # torch.export's


@cases(
    {name: make for name, make in CELLS.items() if name != "unitary()"}, OPERATORS
)  # torch: no complex scan
def test_an_exported_cell_runs(make: Make) -> None:
    same(cell_of(make, torch.float32))


@cases(
    {name: make for name, make in ENCODERS.items() if name.startswith("recurrent(")},
    ["recurrent((13,5),True)"],
)
def test_an_exported_encoder_runs(make: Make) -> None:
    same(ready(lambda: make(READ), torch.float32))
