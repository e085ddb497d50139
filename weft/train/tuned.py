"""Freeze parts of a model, or give parts and layers learning rates of their own.

The settings are `freeze`, `freeze_updates`, `part_rates` and `layer_decay` of settings.py.
Read next: update.py, which multiplies the rate of each group by its `scale`.
"""

import re
from collections.abc import Collection, Mapping, Sequence

import torch
from torch import nn

from weft.errors import ConfigError

LAYER = re.compile(r"^(.*\b(?:blocks|forwards|backwards|layers|stages|convolutions))\.(\d+)\.")
"""A stack of layers in the path of a weight, and the number of the layer."""

EMBEDDING = re.compile(r"^((?:.*\.)?)(?:source_)?embed\.")
"""An embedding in the path of a weight; the first group is what it shares with its encoder or decoder."""


class FrozenParts:
    """Parts of a model that are not trained: no gradient, no state in the optimiser, no dropout.

    Args:
        model: the model; nothing is frozen before `at` is called.
        parts: their names.
        updates: number of updates after which they are trained too; 0 for never.

    Raises:
        ConfigError: there is no such part, or nothing is left to train.
    """

    def __init__(self, model: nn.Module, parts: Sequence[str], updates: int) -> None:
        paths = [find_part(model, part, "training.freeze") for part in parts]
        self._modules = [model.get_submodule(path) for path in paths]
        of_parts = {id(one): one for module in self._modules for one in module.parameters()}
        self._parameters = [one for one in of_parts.values() if one.requires_grad]
        self._updates = updates
        if self._modules and all(id(one) in of_parts for one in model.parameters() if one.requires_grad):
            raise ConfigError("training.freeze: leaves nothing to train; leave out a part")

    def at(self, update: int) -> None:
        """Freeze or release the parts, as it is due after this many updates."""
        frozen = not self._updates or update < self._updates
        for parameter in self._parameters:
            parameter.requires_grad_(not frozen)
        for module in self._modules:
            if module.training == frozen:
                module.train(not frozen)


def scales(model: nn.Module, rates: Mapping[str, float], decay: float) -> dict[str, float]:
    """Factors of the learning rate, by the name of the parameter.

    Source: Howard and Ruder 2018, section 3.2 (discriminative fine-tuning), where each layer has the rate of
        the one above, divided by 2.6.

    Example:
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed = nn.Embedding(2, 3)
        ...         self.encoder = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(3, 3, False)] * 2)})
        >>> made = Model()
        >>> made.encoder["blocks"] = nn.ModuleList(nn.Linear(3, 3, False) for _ in range(2))
        >>> list(scales(made, {}, 0.5).values())
        [0.25, 0.5, 1.0]
    """
    by_path = {find_part(model, part, "training.part_rates"): rate for part, rate in rates.items()}
    every = [name for name, _ in model.named_parameters()]
    heights: dict[str, int] = {}
    for name in every:
        if layer := LAYER.match(name):
            heights[layer[1]] = max(heights.get(layer[1], 0), int(layer[2]) + 1)
    return {
        name: by_path.get(inside(name, by_path), 1.0) * decay ** _below_top(name, heights) for name in every
    }


def _below_top(name: str, heights: Mapping[str, int]) -> int:
    """How many layers lie above a weight; 0 outside of stacks."""
    if layer := LAYER.match(name):
        return heights[layer[1]] - 1 - int(layer[2])
    if found := EMBEDDING.match(name):
        fed = tuple(f"{found[1]}{part}." for part in ("encoder", "decoder"))
        return max((height for stack, height in heights.items() if stack.startswith(fed)), default=0)
    return 0


def apply(optimiser: torch.optim.Optimizer, model: nn.Module, factors: Mapping[str, float]) -> None:
    """Split the groups of a new optimiser by the factors of the learning rate, `scale`, in place."""
    known = {id(parameter): factors[name] for name, parameter in model.named_parameters()}
    groups = []
    for group in optimiser.param_groups:
        by_scale: dict[float, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            by_scale.setdefault(known.get(id(parameter), 1.0), []).append(parameter)
        groups += [{**group, "params": own, "scale": scale} for scale, own in by_scale.items()]
    optimiser.param_groups = groups


def find_part(model: nn.Module, name: str, setting: str) -> str:
    """The path of a part in a model: the module of that path, or the outermost one whose path ends with it.

    Example:
        >>> wrapped = nn.Sequential(nn.ModuleDict({"encoder": nn.Linear(2, 3)}))
        >>> find_part(wrapped, "encoder", "training.freeze")
        '0.encoder'
    """
    paths = [path for path, module in model.named_modules(remove_duplicate=False) if path]
    found = [path for path in paths if path == name or path.endswith(f".{name}")]
    filled = [path for path in found if model.get_submodule(path).state_dict()]
    chosen = min(filled, key=lambda path: path.count("."), default="")
    if not chosen:
        raise ConfigError(f"{setting}: expected one of {', '.join(names(model))}, got {name[:80]!r}")
    return chosen


def names(model: nn.Module) -> list[str]:
    """The parts that a user may want to name: the modules with weights, without a wrapper around all."""
    while len(children := [one for one in model.named_children() if one[1].state_dict()]) == 1:
        model = children[0][1]
    return [name for name, _ in children]


def inside(path: str, parts: Collection[str]) -> str:
    """The longest of these parts that a weight lies in; "" if it lies in none.

    Example:
        >>> inside("encoder.blocks.0.weight", ["encoder", "encoder.blocks", "enc"])
        'encoder.blocks'
    """
    return max((part for part in parts if path == part or path.startswith(f"{part}.")), key=len, default="")
