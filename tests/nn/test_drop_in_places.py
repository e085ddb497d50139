"""Whole models that torch.save wrote name the module of their classes, also one that has moved since."""

import io

import pytest
import torch

import weft.nn as wn
from weft.nn import drop_in_cells


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_whole_model_that_names_the_former_module_of_the_cells_loads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, saved = getattr(wn, name), io.BytesIO()
    torch.manual_seed(1)
    model = torch.nn.Sequential(kind(3, 5))
    monkeypatch.setattr(kind, "__module__", "weft.nn.drop_in_cells")
    torch.save(model, saved)
    monkeypatch.undo()
    assert b"drop_in_cells" in saved.getvalue()
    saved.seek(0)
    loaded = torch.load(saved, weights_only=False)
    assert type(loaded[0]) is kind is getattr(drop_in_cells, name)
    x = torch.randn(2, 3)
    assert all(map(torch.equal, loaded(x), model(x)))
