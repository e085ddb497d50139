"""The state of an optimiser by parameter name: tensors, and JSON for the rest.

torch numbers parameters in the order of their groups and pickles the state; names survive regrouping and can
be stored in a safetensors file. Read next: checkpoints.py.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError
from weft.train.sharding import rows

_LIKE_PARAMETER = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "sum"}
_NEEDED = {
    "Adam": {"step", "exp_avg", "exp_avg_sq"},
    "AdamW": {"step", "exp_avg", "exp_avg_sq"},
    "Adagrad": {"step", "sum"},
}
"""Entries that torch's optimisers expect in their state, by class."""

_NAMES = {"SparseAdagrad": "Adagrad", "MuonStep": "Muon", "_Muon": "Muon"}


def optimiser_name(written: str) -> str:
    """The name of an optimiser in checkpoints."""
    return _NAMES.get(written, written)


def collect(model: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of an optimiser's state by names such as exp_avg/encoder.weight, and the other entries."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{key}/{name}"] = value
    return tensors, numbers


def restore(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    tensors: Mapping[str, Tensor],
    numbers: Mapping[str, Any],
    place: str,
) -> None:
    """Load a state into a newly built optimiser."""
    by_name: dict[str, dict[str, Any]] = {}
    own = dict(model.named_parameters())
    for path, value in {**tensors, **numbers}.items():
        key, _, name = path.partition("/")
        sharded = isinstance(value, Tensor) and name in own
        by_name.setdefault(name, {})[key] = rows(value, own[name]) if sharded else value
    packed = optimiser.state_dict()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    order = [names[id(parameter)] for group in optimiser.param_groups for parameter in group["params"]]
    foreign = sorted(set(by_name) - set(order))
    if foreign:
        raise CheckpointError(
            f"{place}: the optimiser has a state for {foreign[0]}, which this recipe does not train; "
            "use the recipe it was trained with, or another --run"
        )
    needed = _NEEDED.get(optimiser_name(type(optimiser).__name__), set())
    for name, state in by_name.items():
        wrong = [f"{key} is missing" for key in needed if key not in state]
        wrong += [problem for key, value in state.items() if (problem := _problem(key, value, own[name]))]
        if wrong:
            raise CheckpointError(
                f"{place}: the state of the optimiser for {name} does not fit ({min(wrong)}); "
                "restore the checkpoint from a copy, or remove it"
            )
    packed["state"] = {index: by_name[name] for index, name in enumerate(order) if name in by_name}
    optimiser.load_state_dict(packed)


def _problem(key: str, value: Any, parameter: Tensor) -> str:
    if isinstance(value, Tensor) and not value.is_floating_point():
        return f"{key} is {str(value.dtype).removeprefix('torch.')}, not a real number"
    if key in _LIKE_PARAMETER and isinstance(value, Tensor) and value.shape != parameter.shape:
        return f"{key} is {list(value.shape)}, not {list(parameter.shape)}"
    if key in _LIKE_PARAMETER and not isinstance(value, Tensor) and value is not None:
        return f"{key} is not a tensor"
    if key == "step" and isinstance(value, Tensor) and value.numel() != 1:
        return f"{key} is {list(value.shape)}, not one number"
    return ""
