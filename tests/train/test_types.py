"""Weights and optimiser states of another type or shape than the model's are refused, and named."""

import pytest
import safetensors.torch
import torch
from torch import nn

from weft.errors import CheckpointError
from weft.store import weights
from weft.train.optimisers import collect_state, restore_state


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
