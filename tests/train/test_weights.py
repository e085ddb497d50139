"""Weights and optimiser states in safetensors: tied ones once, the same bytes again, nothing else read."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.train.toy import Model, Task
from weft.errors import CheckpointError
from weft.store import weights
from weft.train.optimisers import SGD, AdamW, collect_state, restore_state

pytestmark = pytest.mark.usefixtures("no_threads_left")


def test_tied_weights_are_stored_once_and_named(tmp_path: Path) -> None:
    model = Model()
    data = weights.pack(model.state_dict())
    assert "output.weight" not in safetensors.torch.load(data)
    assert weights.unpack(data).keys() == model.state_dict().keys()
    fresh = Model()
    weights.restore(fresh, weights.unpack(data), "here")
    assert fresh.output.weight is fresh.embed.weight
    assert torch.equal(fresh.embed.weight, model.embed.weight)


def test_the_same_weights_give_the_same_bytes() -> None:
    model = Model()
    assert len({weights.pack(model.state_dict(), update="1", by="test") for _ in range(20)}) == 1


def test_views_of_one_block_are_stored_each(tmp_path: Path) -> None:
    block = torch.arange(6.0)
    data = weights.pack({"a": block[:3], "b": block[3:], "c": block.view(2, 3).mT, "empty": block[:0]})
    read = weights.unpack(data)
    assert read["b"].tolist() == [3.0, 4.0, 5.0]
    assert read["c"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert read["empty"].shape == (0,)


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04K\x01.", b"\xff" * 7 + b"\x7f{}", b"\x02" + b"\0" * 7 + b"[]"]
)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: is damaged"):
        weights.load(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"cannot be read \(No such file"):
        weights.load(tmp_path / "missing.safetensors")


@pytest.mark.parametrize("part", [SGD(momentum=0.9), SGD(), AdamW()])
def test_an_optimiser_goes_on_by_names_as_if_never_stored(part: Any) -> None:
    def take(model: nn.Module, optimiser: torch.optim.Optimizer, times: int) -> None:
        for _ in range(times):
            optimiser.zero_grad()
            model.loss(Task().batch(torch.arange(7).numpy())).mean.backward()
            optimiser.step()

    torch.manual_seed(3)
    model = Model(0.0)
    optimiser = part.build(model)
    take(model, optimiser, 2)
    tensors, numbers = collect_state(model, optimiser)
    assert all(name.split("/")[1] in dict(model.named_parameters()) for name in tensors)
    other = Model(0.0)
    weights.restore(other, weights.unpack(weights.pack(model.state_dict())), "here")
    again = part.build(other)
    stored = weights.unpack(weights.pack(tensors))
    restore_state(other, again, stored, json.loads(json.dumps(numbers)), "here")
    take(model, optimiser, 2)
    take(other, again, 2)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize(
    "dtype", [torch.int32, torch.int64, torch.bool, torch.complex64, torch.float64, torch.float16]
)
def test_weights_of_another_type_are_refused(dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2)
    wrong = model.state_dict() | {"bias": torch.ones(2).to(dtype)}
    with pytest.raises(CheckpointError, match=rf"bias is {str(dtype)[6:]}, not float32"):
        weights.restore(model, weights.unpack(weights.pack(wrong)), "file")


@pytest.mark.parametrize(
    "about", ['{"ties": {"weight": "bias"}}', '{"ties": {"x": "y"}}', '{"ties": [1]}', "[]"]
)
def test_forged_ties_are_refused(about: str) -> None:
    data = safetensors.torch.save({"weight": torch.ones(2), "bias": torch.ones(2)}, {"weft": about})
    with pytest.raises(ValueError, match=r"ties|expected"):
        weights.unpack(data)


FORGED = {
    "integers": ("exp_avg/weight", torch.ones(2, 3, dtype=torch.int64), "exp_avg is int64"),
    "complex": ("exp_avg_sq/weight", torch.ones(2, 3, dtype=torch.complex64), "exp_avg_sq is complex64"),
    "shape": ("exp_avg/weight", torch.ones(3, 3), r"exp_avg is \[3, 3\], not \[2, 3\]"),
    "many steps": ("step/weight", torch.ones(5), r"step is \[5\], not one number"),
    "missing": ("exp_avg/weight", None, "exp_avg is missing"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_optimiser_states_are_refused(name: str) -> None:
    model = nn.Linear(3, 2)
    optimiser = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    tensors, numbers = collect_state(model, optimiser)
    key, value, sentence = FORGED[name]
    tensors = {k: v for k, v in tensors.items() if k != key} | ({} if value is None else {key: value})
    with pytest.raises(CheckpointError, match=rf"optimiser for weight .*{sentence}"):
        restore_state(model, optimiser, tensors, numbers, "step")
