"""Processes send in an update what docs/appendix/scale.md says: the formulas against what torch is handed."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.train.several import Pairs
from tests.train.test_processes import trained
from tests.train.toy import Model

UPDATES, BYTES = 3, 4
# sums of an update: losses, counts, tokens, examples, squares; signals, seconds, CPU seconds
TOLD = 8 * (5 + 3)
WAITS = 4 * 4  # in a whole training: a number each time that one process waits for the others


def padded(parameters: list[nn.Parameter], processes: int = 2) -> int:
    """Numbers of parameters whose first axis is filled up to a multiple of the processes."""
    each = [-(-len(one) // processes) * processes * (one.numel() // len(one)) for one in parameters]
    return sum(each)


@pytest.mark.parametrize("kind", ["", "transformer"])
@pytest.mark.parametrize("sharding", ["none", "full"])
@pytest.mark.slow
def test_bytes_of_an_update(kind: str, sharding: str, tmp_path: Path) -> None:
    """Each process has one batch an update."""
    asked = {"max_updates": UPDATES, "accumulate": 2, "double": False, "counted": True}
    trained(tmp_path / "run", 2, sharding=sharding, model=kind, **asked)
    sent = json.loads((tmp_path / "run" / "sent.json").read_text())
    model = Pairs(kind, 4, 0.0, torch.float32).model() if kind else Model(0.0)
    parameters = list(model.parameters())
    if sharding == "none":
        numbers = sum(one.numel() for one in parameters)
        update = BYTES * numbers + 8 * len(parameters) + TOLD
        assert sent == {"all_reduce": UPDATES * update + WAITS}
        return
    blocks = {
        side: padded([one for name, one in model.named_parameters() if f"{side}.blocks." in name])
        for side in ("encoder", "decoder")
    }
    gathered = padded(parameters) + blocks["encoder"] + 3 * blocks["decoder"]
    assert sent == {
        "all_reduce": UPDATES * TOLD + WAITS,
        "all_gather_single": UPDATES * BYTES * gathered,
        "reduce_scatter_single": UPDATES * BYTES * padded(parameters),
    }
