"""No cell, encoder or decoder asks a GPU for a value, nor copies to it while a graph is recorded.

The stand-in of tests/gpu.py has no values to give. Tasks and heads: tests/train/test_static_shapes.py.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.gpu import GPU, gpu
from tests.laws.members import CELLS, DECODERS, ENCODERS, ROWS, SIZE, Make, cases, source, target
from weft import masks, tree
from weft.masks import sent, static_shapes
from weft.nn.positions import most_positions

READER = ENCODERS["recurrent((13,5),True)"]


class Placed(nn.Module):
    """Parts that move to the GPU together."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)


def on_gpu(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    there = sent(mask, GPU)
    masks.note(there, mask)
    return sent(x.float(), GPU).requires_grad_(), there


def passes(parts: Placed, run: Any) -> None:
    """Forward and backward, as usual and with static shapes while a graph is recorded.

    Learned positions are checked against their number where padding lies among them, which no task trains.
    """
    learned = most_positions(parts.parts[-1]) is not None
    for recording in (True,) if learned else (False, True):
        with gpu() as operations:
            parts.train().to(GPU)
            x, mask = on_gpu(*source())
            y, there = on_gpu(*target())
            operations.recording = recording
            with static_shapes() if recording else torch.enable_grad():
                leaves = [leaf for leaf in tree.leaves(run(x, mask, y, there)) if leaf.is_floating_point()]
                wanted = [p for p in parts.parameters() if p.requires_grad]
                total = sum(leaf.float().sum() for leaf in leaves)
                torch.autograd.grad(total, [x, *wanted], allow_unused=True)


@pytest.mark.slow
@cases(CELLS)
def test_a_cell(make: Make) -> None:
    cell = make(3, SIZE)
    passes(Placed(cell), lambda x, mask, y, there: cell(x, cell.start(x[:, 0]), mask))


@pytest.mark.slow
@cases(ENCODERS)
def test_an_encoder(make: Make) -> None:
    encoder = make(3)
    passes(Placed(encoder), lambda x, mask, y, there: encoder(x, mask).states)


@pytest.mark.slow
@cases(DECODERS)
def test_a_decoder(make: Make) -> None:
    encoder = READER(3)
    decoder = make(2, encoder)

    def run(x: Tensor, mask: Tensor, y: Tensor, there: Tensor) -> Any:
        return decoder(y, decoder.start(encoder(x, mask), ROWS), there)[0]

    passes(Placed(encoder, decoder), run)
